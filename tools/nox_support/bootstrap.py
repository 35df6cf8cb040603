"""Run nox from a private environment, which is created on the first call, so that nox need not be installed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

NOX = "nox==2026.10.20"


def run_nox(noxfile: Path, arguments: list[str]) -> NoReturn:
    """Replace this process by `nox -f noxfile arguments`."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the first thing that an older Python meets
        sys.exit(f"rushlight needs Python 3.11 or newer; this is {sys.version.split()[0]} ({sys.executable})")
    python = private_environment(noxfile.parent / ".nox")
    os.execv(python, [python, "-m", "nox", "-f", str(noxfile), *arguments])


def private_environment(folder: Path) -> str:
    """Return the Python of an environment with nox, which is created if it does not exist."""
    version = "{}.{}.{}".format(*sys.version_info[:3])
    home = folder / f"nox-{NOX.split('==')[1]}-py{version}"
    python = home / "bin" / "python"
    ready = home / "ready"
    folder.mkdir(exist_ok=True)
    # Two processes must not build the same environment at once. An interrupted build leaves no `ready` file.
    with open(folder / "nox.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            print(f"Preparing {NOX} in {home} (once)", flush=True)
            shutil.rmtree(home, ignore_errors=True)
            _call([sys.executable, "-m", "venv", str(home)], "On Debian and Ubuntu: apt install python3-venv")
            _call(
                [str(python), "-m", "pip", "install", "-q", NOX],
                "Installing nox needs access to a package index",
            )
            ready.touch()
    return str(python)


def _call(command: list[str], hint: str) -> None:
    if subprocess.run(command).returncode:
        sys.exit(f"failed: {' '.join(command)}\n{hint}")
