"""Builds and runs the tests of rushlight.zig, and digits.zig: `python docs/examples/zig/train.py`.

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


def build(source: str, folder: Path, *command: str) -> None:
    """Compile a file of Zig and link it with the installed libraries. The program has the name of the file."""
    site = Path(sysconfig.get_path("platlib"))
    libraries = [site / package / "lib" for package in ("rushlight_core", "rushlight_autograd")]
    # The C compiler links: Zig's own linker first compiles a runtime library, which takes 20 seconds.
    compiled = [sys.executable, "-m", "ziglang", *command, str(HERE / f"{source}.zig"), "-lc", "-fPIC"]
    linked = ["cc", f"{source}.o", "-o", source, "-Wl,-z,noexecstack", "-Wl,--allow-shlib-undefined"]
    linked += [f"{option}{path}" for path in libraries for option in ("-L", "-Wl,-rpath,")]
    for step in (compiled, [*linked, "-lrushlight_autograd", "-lrushlight"]):
        subprocess.run(step, check=True, cwd=folder)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build("rushlight", folder, "test-obj", "--test-no-exec")
        subprocess.run([str(folder / "rushlight")], check=True)
        write_data(folder / "data.bin")
        build("digits", folder, "build-obj")
        return subprocess.run([str(folder / "digits"), str(folder / "data.bin")]).returncode


if __name__ == "__main__":
    sys.exit(main())
