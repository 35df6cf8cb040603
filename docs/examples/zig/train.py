"""Builds digits.zig with the installed libraries and runs it: `python docs/examples/zig/train.py`.

Needs rushlight-core, rushlight-autograd, a C compiler, scikit-learn for the data and ziglang for the compiler of Zig.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
TEST_IMAGES = 360


def write_data(path: Path) -> None:
    """The images, with pixels from 0 to 1, in a random order; the last ones are for the test."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.images))
    images = (digits.images[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int64)
    counts = np.array([len(labels) - TEST_IMAGES, TEST_IMAGES], dtype=np.int64)
    path.write_bytes(counts.tobytes() + images.tobytes() + labels.tobytes())


def main() -> int:
    site = Path(sysconfig.get_path("platlib"))
    folders = [site / package / "lib" for package in ("rushlight_core", "rushlight_autograd")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder / "data.bin")
        # The C compiler links: Zig's own linker first compiles a runtime library, which takes 20 seconds.
        compiled = [sys.executable, "-m", "ziglang", "build-obj", str(HERE / "digits.zig"), "-lc", "-fPIC"]
        linked = ["cc", "digits.o", "-o", "digits", "-Wl,-z,noexecstack", "-Wl,--allow-shlib-undefined"]
        linked += [f"{option}{path}" for path in folders for option in ("-L", "-Wl,-rpath,")]
        for command in (compiled, [*linked, "-lrushlight_autograd", "-lrushlight"]):
            subprocess.run(command, check=True, cwd=folder)
        return subprocess.run([str(folder / "digits"), str(folder / "data.bin")]).returncode


if __name__ == "__main__":
    sys.exit(main())
