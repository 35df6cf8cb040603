"""Run `python -m compat write FOLDER` with PyTorch, then `python -m compat read FOLDER` with rushlight: `nox -s compat`.

Writing trains the model of each case and writes two files with PyTorch: `NAME.pt`, the state before the step, and
`NAME-trained.pt`, the numbers and the state after it. Reading starts from the first and compares with the second. Each case
runs in a separate process, since a package whose import fails leaves some of its modules imported.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import traceback
from pathlib import Path

from compat.cases import CASES

# rushlight adds in another order than PyTorch. The bounds are those of float32 after one step.
RTOL, ATOL = 1e-3, 2e-5


def _let_torchvision_import() -> None:
    """Declare the operators that torchvision describes when it is imported, if its own library cannot be loaded.

    The library of the published wheel needs PyTorch's for CUDA. No case calls these operators.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )


def write(name: str, folder: Path) -> str:
    """Train the model of a case with PyTorch, save its states and numbers, and return an empty text (no differences)."""
    import torch

    _let_torchvision_import()
    torch.manual_seed(0)
    model, train = CASES[name]()
    torch.save(model.state_dict(), folder / f"{name}.pt")
    numbers = train()
    torch.save({"numbers": numbers, "state": model.state_dict()}, folder / f"{name}-trained.pt")
    return ""


def read(name: str, folder: Path) -> str:
    """Train the model of a case with rushlight from PyTorch's file, and return the differences from PyTorch's results."""
    import torch

    assert "rushlight" in torch.__version__
    model, train = CASES[name]()
    model.load_state_dict(torch.load(folder / f"{name}.pt"))
    expected = torch.load(folder / f"{name}-trained.pt")
    numbers = train()
    if len(numbers) != len(expected["numbers"]):
        return f"{len(numbers)} numbers, PyTorch has {len(expected['numbers'])}"
    for position, (ours, theirs) in enumerate(zip(numbers, expected["numbers"], strict=True)):
        if not abs(ours - theirs) <= ATOL + RTOL * abs(theirs):
            return f"number {position} is {ours}, PyTorch's {theirs}"
    state = model.state_dict()
    if list(state) != list(expected["state"]):
        return f"the state has other names: {sorted(set(state) ^ set(expected['state']))[:5]}"
    for key, theirs in expected["state"].items():
        try:
            torch.testing.assert_close(state[key], theirs, rtol=RTOL, atol=ATOL)
        except AssertionError as error:
            return f"{key}: {str(error).splitlines()[-2:]}"
    return ""


def main() -> int:
    """Run one case, or all cases in separate processes."""
    parser = argparse.ArgumentParser(prog="compat", description=__doc__)
    parser.add_argument("what", choices=["write", "read"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases, by default all")
    parser.add_argument("--here", action="store_true", help="run the cases in this process")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = arguments.names or list(CASES)
    if not arguments.here:
        failed = []
        for name in names:
            command = [sys.executable, "-m", "compat", arguments.what, str(arguments.folder), name, "--here"]
            if subprocess.run(command).returncode != 0:
                failed.append(name)
        print(f"{arguments.what}: {len(names) - len(failed)} of {len(names)} packages", *failed)
        return len(failed) > 0
    if arguments.what == "read":
        from rushlight import as_torch

        as_torch.install()
    problems = 0
    for name in names:
        try:
            problem = (
                write(name, arguments.folder) if arguments.what == "write" else read(name, arguments.folder)
            )
        except Exception:
            problem = traceback.format_exc()
        print(f"{name}: {problem or 'good'}", flush=True)
        problems += bool(problem)
    return problems


if __name__ == "__main__":
    sys.exit(main())
