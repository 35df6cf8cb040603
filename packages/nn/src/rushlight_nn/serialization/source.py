"""Read the bytes of a checkpoint from a file, a memory map of a file, or a stream."""

from __future__ import annotations

import io
import mmap
import os
import stat

import rushlight_core as core

from .errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, BinaryIO, Self

# Note [Mapped files]
# The memory of a mapped tensor is a memory map of the file. A page is read when it is first used, and processes share
# it. Pages that are written become private copies of the process ("c"), or cannot be written ("r"). The map refers to
# the file, not to its name: if a checkpoint is replaced by another file, processes that have mapped it keep the old
# contents. If a file is truncated or written in place, the contents of the map change, as with NumPy's memmap.

_CHUNK = 1 << 22

# The checksum of zip archives, which is used for all checksums here. It equals `zlib.crc32`, but is much faster.
crc32 = core._C._crc32


def _can_seek(file: Any) -> bool:
    return hasattr(file, "seekable") and bool(file.seekable())


class Source:
    """The bytes of a checkpoint, in a file, a memory map of a file, or a stream.

    Args:
        f: a path, or an open binary file, which is read from its current position to its end.
        mapping: None to read the file, "c" to map it copy-on-write, "r" to map it read-only.

    Raises:
        FormatError: the path belongs to a directory, a pipe or a device file.
        ValueError: `mapping` is given for an open file.
    """

    def __init__(self, f: str | os.PathLike[str] | BinaryIO, mapping: str | None = None) -> None:
        self.mapping = mapping
        self.descriptor: int = -1
        self._memory: memoryview | None = None
        self._map: memoryview | None = None
        self._begin = 0
        self._stream: BinaryIO | None = None
        if not hasattr(f, "read"):
            self.name: str = os.fspath(f)
            # O_NONBLOCK, because opening a pipe would block.
            self.descriptor = os.open(self.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            about = os.fstat(self.descriptor)
            if not stat.S_ISREG(about.st_mode):
                self.close()
                raise FormatError(
                    "the path is a directory, not a file"
                    if stat.S_ISDIR(about.st_mode)
                    else "the path is a pipe or a device, not a regular file\nhint: open the path, and load the open file"
                )
            self.size: int = about.st_size
            return
        self.name = str(getattr(f, "name", "<file>"))
        self._stream = f  # type: ignore[assignment]
        if mapping is not None:
            raise ValueError(f"load(f, mmap): needs a path to map the file, got {f!r}")
        if type(f) in (io.BufferedReader, io.BufferedRandom) and type(f.raw) is io.FileIO:  # type: ignore[union-attr]
            f.flush()  # type: ignore[union-attr]
            self._begin = f.tell()  # type: ignore[union-attr]
            self.size = max(f.seek(0, os.SEEK_END) - self._begin, 0)  # type: ignore[union-attr]
            self.descriptor = os.dup(f.fileno())  # type: ignore[union-attr]
        else:
            self._begin = f.tell() if _can_seek(f) else 0  # type: ignore[union-attr]
            data = f.read()
            self._memory = memoryview(data).cast("B")
            self.size = len(self._memory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def go_to(self, position: int) -> bool:
        """Move the stream to byte `position`, where the next reader of the stream begins.

        Return False if the stream cannot seek.
        """
        if self._stream is None or not _can_seek(self._stream):
            return False
        self._stream.seek(self._begin + position)
        return True

    def close(self) -> None:
        """Close the file; memory maps of it remain valid."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def read(self, begin: int, count: int) -> bytes:
        """Return `count` bytes that begin at byte `begin`.

        Raises:
            FormatError: the file is too short.
        """
        if begin < 0 or count < 0 or begin + count > self.size:
            raise FormatError(f"truncated: the file has {self.size} bytes, but {begin + count} are needed")
        if self._memory is not None:
            return bytes(self._memory[begin : begin + count])
        buffer = bytearray(count)
        self._fill(memoryview(buffer), begin)
        return bytes(buffer)

    def storage(self, begin: int, count: int, alignment: int, checked: bool, crc: int = 0) -> tuple[Any, int]:
        """Return a storage that contains the `count` bytes from byte `begin` on, and their checksum.

        The checksum continues `crc`, the checksum of earlier bytes.

        Args:
            begin, count: the position and the number of the bytes.
            alignment: the alignment of the elements in bytes; mapped bytes that are not aligned are copied.
            checked: whether to compute the checksum.
        """
        if begin < 0 or count < 0 or begin + count > self.size:
            raise FormatError(f"truncated: the file has {self.size} bytes, but {begin + count} are needed")
        if self.mapping is not None and count and begin % alignment == 0:
            view = self._mapped()[begin : begin + count]
            if checked:
                crc = crc32(view, crc)
            return core.frombuffer(view, dtype=core.uint8).untyped_storage(), crc
        storage = core.empty(count, dtype=core.uint8, device="cpu").untyped_storage()
        if count:
            crc = self._fill(memoryview(storage), begin, checked, crc)
        return storage, crc

    def fill(self, storage: Any, begin: int) -> None:
        """Fill `storage` with the bytes that begin at byte `begin`."""
        if begin + storage.nbytes() > self.size:
            raise FormatError(
                f"truncated: the file has {self.size} bytes, but {begin + storage.nbytes()} are needed"
            )
        if storage.nbytes():
            self._fill(memoryview(storage), begin)

    def checksum(self, begin: int, count: int, crc: int = 0) -> int:
        """Return the checksum `crc` updated with `count` bytes that begin at byte `begin`."""
        while count:
            part = self.read(begin, min(count, _CHUNK))
            crc = crc32(part, crc)
            begin, count = begin + len(part), count - len(part)
        return crc

    def _mapped(self) -> memoryview:
        if self._map is None:
            access = mmap.ACCESS_READ if self.mapping == "r" else mmap.ACCESS_COPY
            self._map = memoryview(mmap.mmap(self.descriptor, self.size, access=access))
        return self._map

    def _fill(self, memory: memoryview, begin: int, checked: bool = False, crc: int = 0) -> int:
        # Read in chunks, so that the bytes are still in the cache when the checksum is computed.
        if self._memory is not None:
            memory[:] = self._memory[begin : begin + len(memory)]
            return crc32(memory, crc) if checked else crc
        position = self._begin + begin
        while len(memory):
            count = os.preadv(self.descriptor, [memory[:_CHUNK]], position)
            if not count:
                raise FormatError("truncated: the file became shorter while it was read")
            if checked:
                crc = crc32(memory[:count], crc)
            memory, position = memory[count:], position + count
        return crc
