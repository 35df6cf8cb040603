"""Replace a file atomically."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

# Note [Temporary files]
# If the file system supports it, the new file is written without a name, and the kernel frees it if the process ends.
# When the file is complete and on disk, it gets a temporary name, and is then renamed to replace the old file. The
# writer holds a lock on the file. A temporary file that is not locked was left by a process that was killed, and the
# next save of the same file removes it.


def replace_file(path: str, write: Callable[[BinaryIO], Any]) -> None:
    """Call `write` to fill a new file, and move it to `path` once it is completely on disk."""
    path = os.path.realpath(path)  # replace the target of a symbolic link, not the link
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:  # a device or a pipe is written directly; a directory raises an error
            write(file)
        return
    folder, name = os.path.split(path)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        remove_abandoned(directory, re.escape(name[:200]))
        _replace(directory, name, mode, write)
        os.fsync(directory)  # so that the new name also survives a power failure
    finally:
        os.close(directory)


def _replace(directory: int, name: str, mode: int | None, write: Callable[[BinaryIO], Any]) -> None:
    temporary = f".{name[:200]}.{os.urandom(6).hex()}.tmp"
    named = False
    try:
        try:
            descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=directory)
        except OSError:  # unnamed files are not supported; any other error occurs again in the next call
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=directory)
            named = True
        with open(descriptor, "wb") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
            write(file)
            file.flush()
            os.fsync(descriptor)
            if not named:
                os.link(
                    f"/proc/self/fd/{descriptor}",
                    temporary,
                    src_dir_fd=directory,
                    dst_dir_fd=directory,
                    follow_symlinks=True,
                )
                named = True
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            named = False
    except BaseException:
        if named:
            os.unlink(temporary, dir_fd=directory)
        raise


def remove_abandoned(directory: int, names: str) -> None:
    """Remove from a directory the temporary files that `replace_file` left when its process was killed.

    `directory` is the descriptor of the directory. Only files whose target's name matches the regular
    expression `names` are removed."""
    pattern = re.compile(rf"\.{names}\.[0-9a-f]{{12}}\.tmp")
    for found in os.listdir(directory):
        if not pattern.fullmatch(found):
            continue
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(found, flags, dir_fd=directory)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(found, dir_fd=directory)
        except OSError:  # the file is being written, or another process has removed it
            pass
        finally:
            os.close(descriptor)
