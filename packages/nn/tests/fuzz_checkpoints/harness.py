"""The inputs of the fuzzer, and the rules that must hold for each of them.

An input is a byte that selects its kind, and a payload. The payload is a whole file, or a part of a file that is
wrapped in an intact file, because checksums would reject mutations of this part.
"""

from __future__ import annotations

import io
import json
import struct
import time
import zipfile
import zlib
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from pathlib import Path

import numpy

import rushlight_core as core
from rushlight_nn import Buffer, Parameter
from rushlight_nn.serialization import CheckpointError, load, save
from rushlight_nn.utils.rnn import pack_sequence

HERE = Path(__file__).parent
RECORDED = HERE.parent / "reference" / "checkpoints"

SECONDS = 5.0
MEMORY = 16 << 20  # limit in addition to ten times the file; inputs have at most 64 KB
_STORAGES = {str(i): bytes(range(64)) for i in range(3)}


class Violation(Exception):  # noqa: N818
    """Raised if reading an input takes too long or too much memory. Other errors are raised unchanged."""


def _file(payload: bytes) -> bytes:
    return payload


def _pickle(payload: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a/data.pkl"), payload)
        for name, data in _STORAGES.items():
            archive.writestr(zipfile.ZipInfo(f"a/data/{name}"), data)
    return file.getvalue()


def _legacy(payload: bytes) -> bytes:
    return _LEGACY_START + payload


def _header(payload: bytes) -> bytes:
    return struct.pack("<Q", len(payload)) + payload + bytes(64)


def _document(payload: bytes) -> bytes:
    text = payload.decode("utf-8", "replace")
    metadata = {"rushlight": text, "rushlight.crc32": str(zlib.crc32(text.encode()))}
    tensors = {"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}
    header = json.dumps({"__metadata__": metadata, **tensors}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(16)


KINDS: list[Callable[[bytes], bytes]] = [_file, _pickle, _legacy, _header, _document]


def _legacy_start() -> bytes:
    file = io.BytesIO()
    save(None, file, _use_new_zipfile_serialization=False)
    return file.getvalue().removesuffix(b"\x80\x02N.\x80\x02]q\0.")


_LEGACY_START = _legacy_start()


def wrap(data: bytes) -> bytes:
    """Return the file of an input."""
    return KINDS[data[0] % len(KINDS)](data[1:]) if data else b""


def check(data: bytes, measured: bool = True) -> bool:
    """Read an input's file, and return whether it could be read.

    Raises:
        Violation: reading took too long, or too much memory.
        Exception: reading raised something other than CheckpointError.
    """
    file = wrap(data)
    before = _resident() if measured else 0
    begin = time.monotonic()
    try:
        load(io.BytesIO(file), map_location="cpu")
        read = True
    except CheckpointError:
        read = False
    if time.monotonic() - begin > SECONDS:
        raise Violation(f"{len(file)} bytes took {time.monotonic() - begin:.1f} s")
    if measured:
        taken = _peak() - before
        if taken > 10 * len(file) + MEMORY:
            raise Violation(f"{len(file)} bytes took {taken >> 20} MB of memory")
    return read


def _resident() -> int:
    """Return the resident memory of this process and reset its peak."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def _peak() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


# Seeds ------------------------------------------------------------------------------------------------------


def seeds() -> Iterator[bytes]:
    """Yield the stored inputs, the recorded files of PyTorch, and files that are made here."""
    for path in sorted((HERE / "corpus").iterdir()):
        yield path.read_bytes()
    for path in sorted(RECORDED.iterdir()):
        data = path.read_bytes()
        yield b"\0" + data
        if zipfile.is_zipfile(path):
            archive = zipfile.ZipFile(path)
            yield from (
                b"\1" + archive.read(name) for name in archive.namelist() if name.endswith("data.pkl")
            )
        else:
            yield b"\2" + data.removeprefix(_LEGACY_START)
    for value in _values():
        file = io.BytesIO()
        save(value, file, format="pytorch")
        yield b"\1" + zipfile.ZipFile(file).read("archive/data.pkl")
    base = core.arange(6.0).reshape(2, 3)
    value = {
        "a": base,
        "b": base[1],
        "n": [1, 2.5, None, {3: (b"x",)}, {4}],
        "c": core.ones(2, dtype=core.complex128),
    }
    for name in ("pytorch", "safetensors"):
        file = io.BytesIO()
        save(value, file, format=name)
        yield b"\0" + file.getvalue()
    header = file.getvalue()[8 : 8 + int.from_bytes(file.getvalue()[:8], "little")]
    yield b"\3" + json.dumps({"t": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}}).encode()
    document = json.loads(json.loads(header)["__metadata__"]["rushlight"])
    document["tensors"] = [
        {"name": "t"},
        {"name": "t", "view": [[2], [1], 1]},
        {"name": "t", "class": "Buffer"},
    ]
    document["crc32"] = {"t": zlib.crc32(bytes(16), zlib.crc32(b"F32[4]"))}
    yield b"\4" + json.dumps(document).encode()


def _values() -> Iterator[object]:
    """Yield small values, each with few storages."""
    base = core.arange(6.0)
    yield [base, base[2:], Parameter(base[:1]), Buffer(base[1:])]
    yield {
        "a": core.ones(2, dtype=core.complex64),
        "b": core.tensor([True]),
        "c": core.ones(2, dtype=core.uint16),
    }
    yield OrderedDict(a=core.empty(2, 0), b=core.empty(3, device="meta"), c=core.Size([2]), d=core.float16)
    yield [
        defaultdict(list, {1: [2]}),
        Counter("aab"),
        deque([1], 4),
        Namespace(a=1),
        {1, 2},
        frozenset("a"),
        bytearray(b"b"),
        b"c",
    ]
    yield [
        datetime(2020, 1, 2, tzinfo=timezone(timedelta(hours=1), "x")),
        date(2020, 1, 2),
        time_of_day(3),
        timedelta(1),
    ]
    yield [Path("a/b"), 1j, range(3), 2**70, -1, 1.5, "\ud800", (1, (2,)), None, True, core.device("cuda", 1)]
    yield [numpy.arange(6, dtype="i2").reshape(2, 3), numpy.float32(1), numpy.arange(3, dtype=">f8")]
    yield pack_sequence([core.ones(2), core.ones(1)])
