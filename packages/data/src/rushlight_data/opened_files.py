"""Watch which files a worker reads, to find out later whether they have changed. See Note [Early batches]."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from typing import Any

Signatures = dict[str, tuple[int, ...] | None]

# Events of Python's audit hooks after which a sample may depend on something other than files.
_UNSEEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "pty.", "sqlite3.")
_NEVER: Signatures = {"": ()}  # no file has this signature


class OpenedFiles:
    """Records the files that this process opens through Python while `start` and `stop` enclose the reading."""

    def __init__(self) -> None:
        # Files that are open for writing, such as logs, are ignored; files that are open for reading only are
        # watched.
        self._inherited = _regular_files() - _regular_files(read_only=True)
        self._installed = self._recording = False
        self._signatures: Signatures = {}

    def start(self) -> None:
        """Begin to record."""
        if not self._installed:
            self._installed = True
            sys.addaudithook(self._hook)  # an audit hook cannot be removed
        # Begin with the files that were opened for earlier samples and are still open.
        self._signatures = {path: signature(path) for _, path in _regular_files() - self._inherited}
        self._recording = True

    def stop(self) -> Signatures:
        """End recording and return the files' signatures. If other sources were read, one signature never matches."""
        self._recording = False
        return self._signatures

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._recording:
            return
        if event in ("open", "os.listdir", "os.scandir"):
            path = arguments[0]
            if isinstance(path, (str, bytes)):
                path = os.path.abspath(os.fsdecode(path))
                # The file is opened after this call, so a change in between is detected, too.
                self._signatures.setdefault(path, signature(path))
            elif not isinstance(path, int):
                self._signatures.update(_NEVER)
        elif event.startswith(_UNSEEN):
            self._signatures.update(_NEVER)


def signature(path: str) -> tuple[int, ...] | None:
    """Return a signature of a file, which changes when the file is written or replaced; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def unchanged(signatures: Signatures) -> bool:
    """Return whether the files still have these signatures."""
    return all(signature(path) == saved for path, saved in signatures.items())


def _regular_files(read_only: bool = False) -> set[tuple[str, str]]:
    """Return the descriptors and paths of the files that this process has open, or those open for reading only."""
    paths = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            fd = int(name)
            if read_only and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                continue
            if stat.S_ISREG(os.fstat(fd).st_mode):
                path = os.readlink(f"/proc/self/fd/{name}")
                if not path.startswith("/memfd:"):
                    paths.add((name, path))
        except OSError:  # the descriptor of the list itself
            continue
    return paths
