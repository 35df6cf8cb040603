"""Collect the wheels that a machine without network needs for `python -m gpu.suite`.

    nox -s gpu-bundle        with the Python version that the machine has, such as `python3.12 noxfile.py -s gpu-bundle`

The wheels of rushlight are those in dist/. PyTorch and the libraries of CUDA are large and must be installed on the machine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

# Packages that the suites import in addition to rushlight's.
REQUIREMENTS = ("numpy>=1.26", "pytest>=8", "PyYAML>=6", "hypothesis>=6", "scikit-learn>=1.4")


def fill(folder: Path, wheels: list[Path], python: str = sys.executable) -> list[Path]:
    """Copy the wheels into a new folder, download the wheels of REQUIREMENTS, and return all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for wheel in wheels:
        shutil.copy2(wheel, folder)
    subprocess.run(
        [python, "-m", "pip", "download", "-q", "--only-binary=:all:", "--dest", str(folder), *REQUIREMENTS],
        check=True,
    )
    return sorted(folder.glob("*.whl"))
