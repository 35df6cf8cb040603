"""Read and write the zip archives of PyTorch, whose entries are stored uncompressed at aligned offsets.

The reader uses the central directory at the end of the file. The reader checks that the entries are inside
the file, do not overlap, and begin at the positions that follow from their headers. The reader refuses
compressed and encrypted entries, because PyTorch does not write them and a compressed entry may be a
decompression bomb. The format is defined by PKWARE's APPNOTE 6.3.10.
"""

from __future__ import annotations

import struct

from .errors import Budget, FormatError
from .source import Source, crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

ALIGNMENT = 64  # alignment of entries in the file, so that a memory map of the file can be used directly

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64, _LOCATOR64 = b"PK\x06\x06", b"PK\x06\x07"
_FULL = 0xFFFFFFFF


class Entry:
    """A file in the archive: `size` bytes that begin at byte `begin` of the archive."""

    __slots__ = ("begin", "crc", "header", "is_plain", "name", "size")

    def __init__(self, name: str, header: int, size: int, crc: int, is_plain: bool) -> None:
        self.name: str = name
        self.header: int = header
        self.size: int = size  # size in the archive
        self.crc: int = crc
        self.is_plain: bool = is_plain
        self.begin: int = -1


# Reading ----------------------------------------------------------------------------------------------------


def read_directory(source: Source, budget: Budget) -> dict[str, Entry]:
    """Return a dictionary from names to the entries of the archive.

    Raises:
        FormatError: the archive is truncated or damaged, or has entries of a kind that PyTorch does not
            write.
    """
    count, size, begin = _find_directory(source)
    if size < 46 * count or begin + size > source.size:
        raise FormatError(
            f"truncated or damaged: a central directory of {size} bytes cannot list {count} entries"
        )
    budget.charge(size + 400 * count)
    directory = source.read(begin, size)
    entries: dict[str, Entry] = {}
    position = 0
    for _ in range(count):
        entry, position = _read_entry(directory, position)
        if entry.name in entries:
            raise FormatError(f"there are two entries named {entry.name!r:.80}")
        entries[entry.name] = entry
    if position != size:
        raise FormatError(
            "the archive's central directory has bytes after its last entry: the file is damaged"
        )
    _locate(source, entries, begin)
    return entries


def _find_directory(source: Source) -> tuple[int, int, int]:
    """Return the number of entries, and the size and the position of the central directory."""
    tail_begin = max(source.size - (22 + 65535), 0)
    tail = source.read(tail_begin, source.size - tail_begin)
    at = tail.rfind(_END)
    if at < 0 or at + 22 > len(tail):
        raise FormatError("truncated: the archive's end is missing")
    disk, disk_of_list, here, count, size, begin, comment = struct.unpack("<4H2LH", tail[at + 4 : at + 22])
    if at + 22 + comment != len(tail):
        raise FormatError("there are bytes after the archive's end: truncated or damaged")
    position = tail_begin + at
    if position >= 20 and source.read(position - 20, 4) == _LOCATOR64:
        _, there, _ = struct.unpack("<LQL", source.read(position - 16, 16))
        if there + 56 > position - 20 or source.read(there, 4) != _END64:
            raise FormatError("the archive's end is not where it should be: the file is damaged")
        _, _, _, disk, disk_of_list, here, count, size, begin = struct.unpack(
            "<Q2H2L4Q", source.read(there + 4, 52)
        )
        position = there
    if disk or disk_of_list or here != count:
        raise FormatError("the archive is split into several parts, but PyTorch writes archives of one part")
    if begin + size != position:
        raise FormatError("the archive's central directory is not where it should be: truncated or damaged")
    return count, size, begin


def _read_entry(directory: bytes, position: int) -> tuple[Entry, int]:
    if directory[position : position + 4] != _CENTRAL or position + 46 > len(directory):
        raise FormatError("the archive's central directory has an invalid entry: the file is damaged")
    flags, method, crc, packed, size, name_size, extra_size, comment_size, disk, header = struct.unpack(
        "<8xHH4xLLLHHHH6xL", directory[position : position + 46]
    )
    end = position + 46 + name_size + extra_size + comment_size
    if end > len(directory):
        raise FormatError("the archive's central directory has an invalid entry: the file is damaged")
    raw = directory[position + 46 : position + 46 + name_size]
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"an entry has the name {raw!r:.80}, which is not UTF-8") from None
    extra = directory[position + 46 + name_size : position + 46 + name_size + extra_size]
    size, packed, header = _wide(extra, size, packed, header)
    _refuse_encrypted(flags, name)
    if disk not in (0, 0xFFFF):
        raise FormatError("the archive is split into several parts, but PyTorch writes archives of one part")
    return Entry(name, header, packed, crc, method == 0 and packed == size), end


def _refuse_encrypted(flags: int, name: str) -> None:
    if flags & 0x2041:
        raise FormatError(f"entry {name!r:.80} is encrypted, which is not supported")


def _wide(extra: bytes, size: int, packed: int, header: int) -> tuple[int, int, int]:
    """Return size, compressed size and header position of an entry; numbers of more than 32 bits are in its zip64 field."""
    values = [size, packed, header]
    if _FULL not in values:
        return size, packed, header
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        field, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind == 1:
            for i, value in enumerate(values):
                if value == _FULL:
                    if len(field) < 8:
                        raise FormatError("an entry has a zip64 field that is too short")
                    values[i], field = int.from_bytes(field[:8], "little"), field[8:]
            return values[0], values[1], values[2]
    return size, packed, header


def _locate(source: Source, entries: dict[str, Entry], end: int) -> None:
    """Set the position at which the bytes of each entry begin. Check that no two entries overlap."""
    ordered = sorted(entries.values(), key=lambda entry: entry.header)
    for entry, behind in zip(ordered, [*(e.header for e in ordered[1:]), end], strict=True):
        if entry.header + 30 > end:
            raise FormatError(f"entry {entry.name!r:.80} lies beyond the archive's end: truncated or damaged")
        local = source.read(entry.header, 30)
        flags, method = struct.unpack("<HH", local[6:10])
        name_size, extra_size = struct.unpack("<HH", local[26:30])
        if (
            local[:4] != _LOCAL
            or source.read(entry.header + 30, min(name_size, 65535)) != entry.name.encode()
        ):
            raise FormatError(
                f"entry {entry.name!r:.80} is not where the archive's central directory says: "
                "the file is damaged"
            )
        _refuse_encrypted(flags, entry.name)
        if entry.is_plain and method != 0:
            raise FormatError(
                f"entry {entry.name!r:.80} is compressed, but the archive's central directory says that it "
                "is not: the file is damaged"
            )
        entry.begin = entry.header + 30 + name_size + extra_size
        if entry.begin + entry.size > behind:
            raise FormatError(f"entry {entry.name!r:.80} overlaps the next entry: the file is damaged")


def read_entry(source: Source, entry: Entry, checked: bool = True) -> bytes:
    """Return all bytes of an entry.

    Raises:
        FormatError: the entry is compressed, or the bytes do not match its checksum.
    """
    require_plain(entry)
    data = source.read(entry.begin, entry.size)
    if checked and crc32(data) != entry.crc:
        raise damaged(entry)
    return data


def require_plain(entry: Entry) -> None:
    """Check that an entry is stored uncompressed.

    Raises:
        FormatError: the entry is compressed.
    """
    if not entry.is_plain:
        raise FormatError(
            f"entry {entry.name!r:.80} is compressed, which is not supported: PyTorch stores tensors uncompressed\n"
            "hint: unpack the archive, and pack it with `zip -0 -r`"
        )


def damaged(entry: Entry) -> FormatError:
    """Return the error for an entry whose bytes do not match its checksum."""
    return FormatError(
        f"entry {entry.name!r:.80} is damaged: its checksum does not match\n"
        "hint: use load(verify=False) for files that were written without checksums"
    )


# Writing ----------------------------------------------------------------------------------------------------


class Writer:
    """A writer of archives, which writes one entry after another to a file that need not be seekable."""

    position: int

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.position = 0
        self.directory: list[bytes] = []

    def _write(self, data: Any) -> None:
        self.file.write(data)
        self.position += len(data)

    def add(self, name: str, data: Any) -> None:
        """Store the bytes `data` under `name`."""
        raw, size, crc = name.encode(), len(data), crc32(data)
        header = self.position
        wide = size >= _FULL
        field = struct.pack("<HHQQ", 1, 16, size, size) if wide else b""
        begin = header + 30 + len(raw) + len(field) + 4
        padding = b"\0" * (-begin % ALIGNMENT)
        # "FB" is the field with which PyTorch aligns its entries.
        field += struct.pack("<2sH", b"FB", len(padding)) + padding
        short = _FULL if wide else size
        version = 45 if wide else 20
        fixed = struct.pack("<HHHHHLLLH", version, 0x800, 0, 0, 0x21, crc, short, short, len(raw))
        self._write(_LOCAL + fixed + struct.pack("<H", len(field)) + raw + field)
        self._write(data)
        far = header >= _FULL
        numbers = ([size, size] if wide else []) + ([header] if far else [])
        extra = struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
        tail = struct.pack("<HHHHLL", len(extra), 0, 0, 0, 0, _FULL if far else header)
        self.directory.append(_CENTRAL + struct.pack("<H", 45) + fixed + tail + raw + extra)

    def finish(self) -> None:
        """Write the central directory, which completes the archive."""
        begin, count = self.position, len(self.directory)
        for record in self.directory:
            self._write(record)
        size = self.position - begin
        if count >= 0xFFFF or begin >= _FULL or size >= _FULL:
            end = self.position
            self._write(_END64 + struct.pack("<Q2H2L4Q", 44, 45, 45, 0, 0, count, count, size, begin))
            self._write(_LOCATOR64 + struct.pack("<LQL", 0, end, 1))
        short = min(count, 0xFFFF)
        self._write(_END + struct.pack("<4H2LH", 0, 0, short, short, min(size, _FULL), min(begin, _FULL), 0))
