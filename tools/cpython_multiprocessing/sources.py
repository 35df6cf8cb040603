"""Find CPython's tests in the interpreter, or in Debian's package, which can be unpacked without root rights."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

NAME = "test._test_multiprocessing"


class Missing(Exception):  # noqa: N818 (not a failure of the tests)
    """Raised if the tests are found neither in the interpreter nor in a package."""


def find(folder: Path) -> Path:
    """Return the file of the tests, and make the package `test` beside it importable.

    An interpreter that Debian or Ubuntu has built lacks them. Their package is then downloaded to `folder`, and unpacked.
    Raises Missing if that fails."""
    if (file := _file()) is not None:
        return file
    unpacked = folder / "unpacked"
    package = f"libpython3.{sys.version_info.minor}-testsuite"
    if not unpacked.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "download", package], folder, package)
        archives = sorted(folder.glob(f"{package}_*.deb"))
        if not archives:
            raise Missing(f"apt-get download {package} has left no archive")
        _run(["dpkg", "-x", str(archives[-1]), str(unpacked)], folder, package)
    extend(unpacked)
    if (file := _file()) is None:
        raise Missing(f"{package} has no {NAME}")
    return file


def extend(unpacked: Path) -> None:
    """Add the unpacked package's modules to the interpreter's package `test`."""
    test = importlib.import_module("test")  # imported by name, because type checkers have no stubs for it
    more = unpacked / "usr" / "lib" / f"python3.{sys.version_info.minor}" / "test"
    if more.is_dir() and str(more) not in test.__path__:
        test.__path__.append(str(more))


def _file() -> Path | None:
    try:
        spec = importlib.util.find_spec(NAME)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or importlib.util.find_spec("test.support.script_helper") is None:
        return None
    return Path(spec.origin)


def _run(command: list[str], folder: Path, package: str) -> None:
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError as error:
        raise Missing(f"this interpreter has no {NAME}, and {command[0]} cannot be run: {error}") from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        raise Missing(
            f"this interpreter has no {NAME}, and {' '.join(command[:2])} of {package} failed: {last}"
        )
