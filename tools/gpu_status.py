"""Record the results of the CUDA plug-in's kernels, operator by operator.

    python tools/gpu_status.py run --name gpu [--backend LIBRARY] [WORD...]    runs the samples of operators with kernels
    python tools/gpu_status.py table                                           writes docs/gpu-status.md

`run` makes every call of the operators' entries on the CPU and on the device, in several dtypes, and compares. An entry
without samples is tested with those of the operator that calls it, such as `scatter` for `scatter_`, or with its laws,
which are then evaluated on the device. If the operator that calls it has laws, because its results are not unique, the laws
are tested instead of the results. The results are written to docs/gpu-runs.json under a name. `host` stands for the
plug-in with a driver that emulates a device in host memory, and any other name for a machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import re
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "docs" / "gpu-runs.json"
PAGE = ROOT / "docs" / "gpu-status.md"
CORE = ROOT / "packages" / "core"
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool", "complex64")


def run(name: str, backend: Path | None, words: list[str], note: str) -> int:
    """Run the samples, record the results, and return the number of operators that differ."""
    import rushlight_core as core
    from rushlight_core import _C, _settings
    from rushlight_testing.operators import (
        all_samples,
        assert_same,
        boxed,
        law_holds,
        map_tensors,
        operators,
    )

    if backend:
        core.devices.load_backend(backend)
    core.zeros(1, device="cuda")
    for what in ("conv", "rnn"):  # TF32 has fewer digits than the CPU's results
        _settings.set_fp32_precision(what, "ieee")
    kernels = set(_C._kernels("cuda"))
    entries = {op.name: op for op in operators()}
    records: dict[str, Any] = {}
    for own in operators():
        if own.name not in kernels or (words and not any(word in own.name for word in words)):
            continue
        base, dot, overload = own.name.partition(".")
        caller = entries.get(base.removeprefix("_").removesuffix("_") + dot + overload)
        # Results that are not unique, such as eigenvectors, satisfy laws.
        by_law = bool(caller and caller.law and caller.samples)
        op = caller if caller and (by_law or not own.samples) else own
        passed, wrong, refused = [], [], 0
        if not op.samples and op.law:
            wrong = [f"the law {text} does not hold: {fault}" for text in op.law if (fault := fault_of(text))]
            passed = [] if wrong else ["laws"]
        for dtype in DTYPES:
            samples = 0
            for made, again in zip(all_samples(op, dtype), all_samples(op, dtype), strict=True):
                try:
                    core.manual_seed(11)
                    host = boxed(op, made)
                except Exception:  # the operator does not accept this dtype
                    continue
                try:
                    core.manual_seed(11)
                    if any(argument.name == "device" for argument in op.schema.arguments):
                        again.kwargs["device"] = core.device("cuda")
                    device = boxed(op, map_tensors(lambda t: t.to("cuda"), again))
                    found = map_tensors(lambda t: t.cpu(), device)
                    # A law for float32 may not apply to another dtype.
                    if by_law and all(law_holds(op, text, made, host) for text in op.law):
                        for text in op.law:
                            if not law_holds(op, text, made, found):
                                raise AssertionError(f"the law {text} does not hold")
                    else:
                        assert_same(found, host, f"{op.name}({made.text}) of {dtype}")
                    samples += 1
                except NotImplementedError:  # the device has no kernel for this dtype
                    refused += 1
                except Exception as error:
                    wrong.append(
                        f"{dtype}: {made.text}: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
                    )
            if samples:
                passed.append(dtype)
        records[own.name] = {"passed": passed, "differs": wrong, "refused": refused}
        if wrong:
            print(f"{own.name}: {len(wrong)} samples differ; the first: {wrong[0]}", flush=True)
    differing = sum(bool(record["differs"]) for record in records.values())
    print(
        f"{len(records)} operators, {differing} differ, {sum(not r['passed'] for r in records.values())} passed no sample"
    )
    known = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    machine = note or f"{platform.machine()}, Python {platform.python_version()}"
    kept = known.get(name, {}).get("operators", {}) if words else {}
    known[name] = {"date": str(datetime.date.today()), "machine": machine, "operators": kept | records}
    RUNS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return differing


def fault_of(law: str) -> str:
    """Evaluate a law with new tensors on the device. Return what is wrong, or an empty text."""
    import rushlight_core as core
    from rushlight_testing import laws
    from rushlight_testing.samples import evaluated

    names = {name: getattr(laws, name) for name in dir(laws) if not name.startswith("_")}
    names |= {name: partial(on_cpu, names[name]) for name in ("follows", "frequent")}
    core.manual_seed(7)
    core.set_default_device("cuda")
    try:
        return "" if bool(evaluated(law, core, names)) else "it is false"
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    finally:
        core.set_default_device("cpu")


def on_cpu(test: Callable[..., bool], values: Any, *arguments: Any) -> bool:
    """Apply a test of random numbers, which runs on the CPU, to numbers of the device."""
    if values.device.type != "cuda":
        raise RuntimeError("the numbers were not drawn on the device")
    return test(values.cpu(), *arguments)


def compiled() -> set[str]:
    """Return the operators that have a kernel: loops of functors and reducers, and the list in kernel_list.cpp."""
    sys.path.insert(0, str(CORE))
    from codegen.loader import OPS, load_ops  # type: ignore[import-not-found]

    text = (CORE / "src" / "cuda" / "kernel_list.cpp").read_text()
    listed = set(re.findall(r'\{"(\w[\w.]*)", \w+[,}]', text))
    return listed | {op.name for op in load_ops(OPS) if op.kind in ("pointwise", "reduce")}


def page() -> str:
    """Return the text of docs/gpu-status.md."""
    kernels = compiled()
    from codegen.duty import SHARED, way  # type: ignore[import-not-found]
    from codegen.loader import OPS, load_ops

    runs = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    host = runs.get("host", {}).get("operators", {})
    machines = {name: entry for name, entry in runs.items() if name != "host"}
    ops = load_ops(OPS)

    def shown(record: dict[str, Any] | None) -> str:
        if not record:
            return ""
        if record["differs"]:
            return f"{len(record['differs'])} samples differ"
        text = ", ".join(record["passed"])
        return text + (f"; {record['refused']} samples refused" if record["refused"] and text else "")

    rows, counts = [], {"kernel": 0, "host": 0, "gpu": 0, "none": 0}
    for op in ops:
        if op.kind not in ("pointwise", "reduce", "custom", "dynamic"):
            continue
        there = op.name in kernels
        on_gpu = [f"{name}: {shown(entry['operators'].get(op.name))}" for name, entry in machines.items()
                  if shown(entry["operators"].get(op.name))]  # fmt: skip
        on_host = shown(host.get(op.name))
        counts["kernel" if there else "none"] += 1
        counts["host"] += bool(on_host and not host[op.name]["differs"])
        counts["gpu"] += bool(on_gpu)
        rows.append(f"| `{op.name}` | {'yes' if there else 'not there'} | {on_host} | {'; '.join(on_gpu)} |")
    total = counts["kernel"] + counts["none"]
    made_of_others = sum(way(op, "cuda", kernels | set(SHARED)) == "composite" for op in ops)
    refused = (
        f" {counts['none']} operators have no kernel: they raise NotImplementedError, or are computed on the CPU with"
        ' `rushlight.backends.device_fallback = "warn"`.'
        if counts["none"]
        else ""
    )
    lines = [
        "# What runs on a GPU",
        "",
        "Written by `python tools/gpu_status.py table`; do not edit.",
        "",
        f"{total} operators need a kernel, and {counts['kernel']} of them have a kernel that compiles for CUDA. The"
        f" samples of {counts['host']} operators have passed on the host, where g++ compiles the kernels' code with a"
        f" driver that emulates a device in host memory (`nox -s cuda-host`). The samples of {counts['gpu']} operators have"
        f" passed on a GPU.{refused} {made_of_others} more operators need no kernels because they call other operators, and"
        " operators that make views or manage memory need none either.",
        "",
    ]
    for name, entry in sorted(runs.items()):
        lines.append(f"* {name}: {entry['machine']}, {entry['date']}")
    if not machines:
        lines.append("* No run on a GPU has been recorded yet.")
    lines += [
        "",
        "The last two columns list the dtypes for which the samples give the same results as on the CPU.",
        "",
    ]
    lines += ["| operator | kernel | on the host | on a GPU |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run", help="run the operators' samples on the device and on the CPU")
    command.add_argument("--name", default="gpu", help="the name under which the run is recorded")
    command.add_argument("--note", default="", help="the machine: device, driver")
    command.add_argument("--backend", type=Path, help="the plug-in's library, if no package provides it")
    command.add_argument(
        "words", nargs="*", help="only operators whose names contain one of these; others keep their results"
    )
    commands.add_parser("table", help="write docs/gpu-status.md")
    args = parser.parse_args()
    if args.command == "table":
        PAGE.write_text(page())
        return 0
    warnings.simplefilter("ignore")
    return 1 if run(args.name, args.backend, args.words, args.note) else 0


if __name__ == "__main__":
    sys.exit(main())
