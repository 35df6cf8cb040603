"""Record which files a worker reads, so that later changes of these files can be detected. See Note [Early batches].

Python calls audit hooks when it opens a file or lists a folder, but not when it reads the status of a file or the target of
a link. Therefore, the functions of `os` that read a status or a link are replaced while files are recorded. `os.path` and
`pathlib` call these functions of `os`.
"""

from __future__ import annotations

import fcntl
import functools
import os
import stat
import sys
from collections.abc import Callable
from typing import Any

Status = tuple[int, ...] | None
Signatures = dict[str, tuple[Status, Status]]

# Events of Python's audit hooks after which a sample may depend on something other than files.
_UNSEEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "pty.", "sqlite3.")
_NEVER: Signatures = {"": ((), ())}  # no file has this signature

_UNAUDITED = ("access", "lstat", "readlink", "stat", "statvfs")
# `shutil` looks up in these sets which arguments a function supports.
_SUPPORTED_BY = (
    os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks
)  # fmt: skip
_stat, _lstat = os.stat, os.lstat


class OpenedFiles:
    """A record of the files that this process reads through Python between `start` and `stop`."""

    def __init__(self) -> None:
        # Files that are open for writing, such as logs, are ignored; files that are open for reading only are
        # watched.
        self._inherited = _regular_files() - _regular_files(read_only=True)
        self._installed = self._recording = False
        self._signatures: Signatures = {}
        self._originals = {name: getattr(os, name) for name in _UNAUDITED}
        self._recorders = {name: self._recorder(function) for name, function in self._originals.items()}

    def start(self) -> None:
        """Begin to record."""
        if not self._installed:
            self._installed = True
            sys.addaudithook(self._hook)  # an audit hook cannot be removed
        # Begin with the files that were opened for earlier samples and are still open.
        self._signatures = {path: signature(path) for _, path in _regular_files() - self._inherited}
        vars(os).update(self._recorders)
        self._recording = True

    def stop(self) -> Signatures:
        """End recording, and return the signatures of the files.

        If this process has also used something other than files, such as a socket, `unchanged` returns False for these
        signatures."""
        self._recording = False
        vars(os).update(self._originals)
        return self._signatures

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._recording:
            return
        if event in ("open", "os.listdir", "os.scandir"):
            self._record(arguments[0])
        elif event.startswith(_UNSEEN):
            self._signatures.update(_NEVER)

    def _record(self, path: Any) -> None:
        if isinstance(path, (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(path))
            # The file is read after this call, so a change in between is detected, too.
            self._signatures.setdefault(path, signature(path))
        elif not isinstance(path, int):
            self._signatures.update(_NEVER)

    def _recorder(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that records its argument `path` and calls `function`."""

        @functools.wraps(function)
        def recorder(path: Any, *args: Any, **kwargs: Any) -> Any:
            # A path relative to an open directory is not the path of the file.
            self._record(path if kwargs.get("dir_fd") is None else None)
            return function(path, *args, **kwargs)

        for functions in _SUPPORTED_BY:
            if function in functions:
                functions.add(recorder)
        return recorder


def signature(path: str) -> tuple[Status, Status]:
    """Return a signature of a file, which changes when the file, or a link at its path, is written or replaced."""
    return _status(_stat, path), _status(_lstat, path)


def _status(read: Callable[[str], os.stat_result], path: str) -> Status:
    try:
        status = read(path)
    except (OSError, ValueError):  # there is no such file, or the path has a null character
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def unchanged(signatures: Signatures) -> bool:
    """Return whether the files still have the signatures that :meth:`OpenedFiles.stop` returned."""
    return all(signature(path) == saved for path, saved in signatures.items())


def _regular_files(read_only: bool = False) -> set[tuple[str, str]]:
    """Return the descriptors and paths of the files that this process has open, or only of those opened read-only."""
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
