"""A dataset of the lines of a text file, which are read when they are needed."""

from __future__ import annotations

import os
from typing import Any

from .dataset import Dataset

__all__ = ["TextLines"]

_CHUNK = 1 << 24


class TextLines(Dataset[str]):
    """A dataset whose sample i is line i of a text file, without the line ending.

    Lines end with "\\n" or "\\r\\n". The positions of the lines, 8 bytes each, are found when the dataset is created;
    worker processes that are forked share them. The lines themselves stay in the file.

    Arguments:
        path: path of the file.
        encoding: encoding of the file, in which a newline must be the byte 10, as in UTF-8 and Latin-1.
        index: path of an index file, which stores the positions of the lines. If the index file exists and
            the text file has not changed since the index file was written, the index file is mapped to
            memory; otherwise a new index file is written. If `index` is None, the positions are not stored in
            a file.

    Raises OSError if a file cannot be read. Reading a sample raises RuntimeError if the text file has become shorter, and
    UnicodeDecodeError, with a note that names the line, if a line is not valid in the encoding.

    Example:
        >>> _ = open("poem.txt", "w").write("roses\\nviolets\\n")
        >>> lines = TextLines("poem.txt")
        >>> len(lines), lines[1]
        (2, 'violets')
    """

    draws_random = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        encoding: str = "utf-8",
        index: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path: str = os.path.abspath(path)
        self.encoding = encoding
        self.index: str | None = None if index is None else os.path.abspath(index)
        self._open()

    def _open(self) -> None:
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self._ends = _load_ends(self._fd, self.index)

    def __getitem__(self, index: int) -> str:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"TextLines: index {index} is out of range for {count} lines")
        index %= count
        begin = int(self._ends[index - 1]) if index else 0
        size = int(self._ends[index]) - begin
        data = os.pread(self._fd, size, begin)
        if len(data) != size:
            raise RuntimeError(f"TextLines: {self.path} has become shorter since its lines were counted")
        try:
            return data.removesuffix(b"\n").removesuffix(b"\r").decode(self.encoding)
        except UnicodeDecodeError as error:
            error.add_note(f"in TextLines(path={self.path!r}), while reading line {index}")
            raise

    def __len__(self) -> int:
        return len(self._ends)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "encoding": self.encoding, "index": self.index}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __del__(self) -> None:
        fd = self.__dict__.pop("_fd", None)
        if fd is not None:
            os.close(fd)


def _load_ends(fd: int, index: str | None) -> Any:
    """Return the end offset of each line of a file as a read-only array."""
    import numpy as np

    status = os.fstat(fd)
    # The saved array begins with the size and the modification time of the text file.
    head = [status.st_size, status.st_mtime_ns]
    if index is not None and os.path.exists(index):
        saved = np.load(index, mmap_mode="r")
        if saved.dtype == np.int64 and saved[:2].tolist() == head:
            return saved[2:]
    ends = _find_ends(fd)
    if index is not None:
        temporary = f"{index}.{os.getpid()}"
        with open(temporary, "wb") as file:
            np.save(file, np.concatenate([np.array(head, np.int64), ends]))
        os.replace(temporary, index)
    ends.flags.writeable = False
    return ends


def _find_ends(fd: int) -> Any:
    import numpy as np

    parts = [np.empty(0, np.int64)]
    offset, last = 0, b"\n"
    while chunk := os.pread(fd, _CHUNK, offset):
        parts.append(np.flatnonzero(np.frombuffer(chunk, np.uint8) == 10) + (offset + 1))
        offset, last = offset + len(chunk), chunk[-1:]
    if last != b"\n":  # the last line has no line ending
        parts.append(np.array([offset], np.int64))
    return np.concatenate(parts)
