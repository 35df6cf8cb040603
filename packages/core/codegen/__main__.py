"""The command line. Builds call `generate`, `derivatives` and `cuda-kernels`; users call `docs`, `explain` and `duty`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file by the build
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    __package__ = "codegen"
    import codegen  # type: ignore[import-not-found]  # noqa: F401

from .batching import check_batching, emit_batching, load_batching
from .derivatives import load_derivatives
from .duty import duty
from .emit_bodies import emit_bodies
from .emit_c import emit_c
from .emit_derivatives import emit_derivatives
from .emit_docs import emit_docs
from .emit_docstrings import emit_docstrings
from .emit_headers import emit_headers
from .emit_kernels import CUDA, emit_cuda_list, emit_kernels
from .emit_onnx import emit_onnx
from .emit_python import emit_python
from .emit_stubs import emit_stubs
from .emit_table import emit_table
from .explain import UnknownOperatorError, explain, find_derivatives
from .loader import OPS, EntryError, load_ops
from .writer import GENERATED, write_all


def generate(ops_folder: Path, out: Path) -> None:
    """Write all generated files of core below `out`, and sources.cmake, which lists them."""
    ops = load_ops(ops_folder)
    emitters = (
        emit_headers, emit_c, emit_bodies, emit_table, emit_kernels, emit_python, emit_docstrings, emit_stubs
    )  # fmt: skip
    _write(out, {name: text for emit in emitters for name, text in emit(ops).items()})


def generate_derivatives(ops_folder: Path, folder: Path, batching: Path, out: Path) -> None:
    """Write autograd's generated files below `out`."""
    ops = load_ops(ops_folder)
    derivatives = load_derivatives(folder, ops)
    rules = load_batching(batching, ops)
    check_batching(rules, derivatives)
    _write(out, emit_derivatives(derivatives, ops) | emit_batching(rules, ops))


def _write(out: Path, files: dict[str, str]) -> None:
    """Write `files` below `out`, and sources.cmake, which lists the files to compile."""
    groups = {"LIB": "lib/", "KERNEL": "kernels/", "PYTHON": "python/"}
    lines = [f"# {GENERATED}"]
    for group, folder in groups.items():
        names = sorted(name for name in files if name.startswith(folder) and name.endswith(".cpp"))
        quoted = "".join(f'\n    "${{CMAKE_CURRENT_LIST_DIR}}/{name}"' for name in names)
        lines.append(f"set(RUSHLIGHT_GENERATED_{group}_SOURCES{quoted})")
    files["sources.cmake"] = "\n".join(lines) + "\n"
    write_all(out, files)


class UnknownDeviceError(ValueError):
    """Raised if no device of the requested type exists."""


def kernels_of(device: str, backend: Path | None) -> dict[str, list[str]]:
    """Return a dict that maps each kernel of a device's backend to the dtypes that the kernel does not support.

    For the CPU and the meta device, the dict is empty."""
    if device in ("cpu", "meta"):
        return {}
    from rushlight_core import _C  # imported here, because the library may not be built yet

    if backend:
        _C._load_backend(backend)
    try:
        count = _C._device_count(device)
    except RuntimeError as error:
        raise UnknownDeviceError(str(error)) from None
    if count == 0:
        raise UnknownDeviceError(f"there is no device {device!r}: no backend of that name is attached")
    return _C._kernels(device)


def main() -> int:
    parser = argparse.ArgumentParser(prog="rushlight_core.codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("generate", help="write the generated sources")
    command.add_argument("--ops", type=Path, default=OPS)
    command.add_argument("--out", type=Path, required=True)
    command = commands.add_parser(
        "derivatives", help="write the sources of autograd's formulas and batching rules"
    )
    command.add_argument("--ops", type=Path, default=OPS)
    command.add_argument("--derivatives", type=Path, required=True)
    command.add_argument("--batching", type=Path, required=True)
    command.add_argument("--out", type=Path, required=True)
    command = commands.add_parser("cuda-kernels", help="write the CUDA loops of functors and reducers")
    command.add_argument("--ops", type=Path, default=OPS)
    command.add_argument("--out", type=Path, required=True)
    command.add_argument(
        "--operators", nargs="+", help="generate loops only for these operators, for a quick build"
    )
    command = commands.add_parser("onnx", help="write the table of how operators are exported to ONNX")
    command.add_argument("--ops", type=Path, default=OPS)
    command.add_argument("--out", type=Path, required=True)
    command = commands.add_parser("explain", help="print every file and symbol behind an operator")
    command.add_argument("name")
    command.add_argument("--ops", type=Path, default=OPS)
    command.add_argument("--derivatives", type=Path, help="folder of the formulas")
    command = commands.add_parser("duty", help="print how each operator runs on a device")
    command.add_argument("device", nargs="?", default="cpu", help="a device type; cpu by default")
    command.add_argument("--ops", type=Path, default=OPS)
    command.add_argument(
        "--backend", type=Path, help="shared library of the device, if no package provides it"
    )
    command = commands.add_parser("docs", help="write a page of documentation for each operator")
    command.add_argument("--ops", type=Path, default=OPS)
    command.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    try:
        if args.command == "generate":
            generate(args.ops, args.out)
        elif args.command == "derivatives":
            generate_derivatives(args.ops, args.derivatives, args.batching, args.out)
        elif args.command == "cuda-kernels":
            ops = load_ops(args.ops)
            loops = [op for op in ops if not args.operators or op.name in args.operators]
            write_all(args.out, emit_kernels(loops, CUDA) | emit_cuda_list(loops, ops))
        elif args.command == "onnx":
            _write(args.out, emit_onnx(load_ops(args.ops)))
        elif args.command == "docs":
            write_all(args.out, emit_docs(load_ops(args.ops)))
        elif args.command == "duty":
            print(duty(load_ops(args.ops), args.device, kernels_of(args.device, args.backend)))
        else:
            print(explain(args.name, load_ops(args.ops), args.derivatives or find_derivatives()))
    except (EntryError, UnknownDeviceError, UnknownOperatorError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
