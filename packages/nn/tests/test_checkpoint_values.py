"""Contents of unusual checkpoints: very many objects, user-defined classes, storages, several files in one stream."""

from __future__ import annotations

import collections
import contextlib
import enum
import gc
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
import zlib

import pytest

import rushlight_core as core
from rushlight_nn import serialization
from rushlight_nn.serialization import CheckpointError, errors, load, save

Point = collections.namedtuple("Point", "x y")


class Color(enum.IntEnum):
    RED = 3


class Level(enum.Enum):
    LOW = ("a", 1)


def through(value, **how):
    file = io.BytesIO()
    save(value, file, **how)
    file.seek(0)
    return load(file)


# Memory ---------------------------------------------------------------------------------------------------------

N = 30_000  # RUSHLIGHT_LARGE_CHECKPOINTS selects more
LARGE = {
    "small ints": lambda n: [i % 256 for i in range(n)],
    "ints": lambda n: list(range(n)),
    "constants": lambda n: [None, True] * (n // 2),
    "floats": lambda n: [i / 7 for i in range(n)],
    "words": lambda n: [f"w{i % 500}" for i in range(n)],
    "vocabulary": lambda n: {f"w{i}": i for i in range(n)},
    "names of numbers": lambda n: {i: f"w{i}" for i in range(n)},
    "numbers of numbers": lambda n: dict.fromkeys(range(n), 1),
    "set": lambda n: set(range(n)),
    "set of words": lambda n: {f"w{i}" for i in range(n)},
    "pairs": lambda n: {(i, i + 1): 0 for i in range(n)},
    "empty lists": lambda n: [[] for _ in range(n)],
    "empty dictionaries": lambda n: [{} for _ in range(n)],
    "short lists": lambda n: [[1] for _ in range(n)],
    "short dictionaries": lambda n: [{"a": 1} for _ in range(n)],
    "short sets": lambda n: [{1, 2, 3, 4, 5} for _ in range(n // 2)],
    "counter": lambda n: collections.Counter(dict.fromkeys(range(n), 2)),
    "ordered dictionaries": lambda n: [collections.OrderedDict({1: 2}) for _ in range(n // 4)],
    "queues": lambda n: [collections.deque([1, 2]) for _ in range(n // 10)],
    "punctuation": lambda n: "{[,]:} " * n,
}


@pytest.fixture
def strict(monkeypatch):
    """Remove the constant part of the budget, which would be sufficient for small files of any content."""
    plain = errors.Budget.__init__

    def begin(self, size):
        plain(self, size)
        self.left -= 7 << 20

    monkeypatch.setattr(errors.Budget, "__init__", begin)


def as_pytorch_does(value):
    """Return a PyTorch file with a pickle by Python's own pickler, which numbers all objects."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("archive/data.pkl", pickle.dumps(value, 2))
    return file.getvalue()


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("form", ["pytorch", "safetensors", "PyTorch's own"])
def test_what_save_writes_can_be_loaded(kind, form, strict):
    value = LARGE[kind](int(os.environ.get("RUSHLIGHT_LARGE_CHECKPOINTS", N)))
    if form == "PyTorch's own":
        data = as_pytorch_does(value)
    else:
        file = io.BytesIO()
        save(value, file, format=form)
        data = file.getvalue()
    assert load(io.BytesIO(data)) == value


@pytest.mark.parametrize("kind", ["small ints", "ints", "vocabulary", "set", "empty lists"])
@pytest.mark.parametrize("form", ["pytorch", "safetensors"])
def test_the_budget_covers_what_is_taken(kind, form, monkeypatch):
    budgets = []
    begin = errors.Budget.__init__
    monkeypatch.setattr(
        errors.Budget, "__init__", lambda self, size: (begin(self, size), budgets.append(self))[0]
    )
    file = io.BytesIO()
    save(LARGE[kind](N), file, format=form)
    gc.collect()
    tracemalloc.start()
    try:
        load(io.BytesIO(file.getvalue()))
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = len(file.getvalue())
    charged = errors.RATIO * size + errors.FREE - budgets[0].left
    assert taken < 1.2 * charged + 4 * size + (4 << 20)  # strings, and small ints that share one object


# User-defined classes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pytorch", "safetensors"])
def test_classes_are_described(form, tmp_path):
    value = {
        "points": [Point(1, core.ones(2)), Point(x=(2,), y=None)],
        "color": Color.RED,
        "level": Level.LOW,
    }
    found = through(value, format=form)
    first, second = found["points"]
    assert type(first).__name__ == "Point"
    assert type(first) is type(second)
    assert first._fields == ("x", "y")
    assert (first.x, first.y.tolist(), second) == (1, [1, 1], ((2,), None))
    assert found["color"] == 3
    assert type(found["color"]) is int
    assert tuple(found["level"]) == ("a", 1)
    with serialization.safe_globals([Point, Color, Level]):
        found = through(value, format=form)
        assert type(found["points"][0]) is Point
        assert found["color"] is Color.RED
        assert found["level"] is Level.LOW


def test_described_classes_are_not_unsafe(tmp_path):
    save([Point(1, 2)], tmp_path / "x.pt")
    assert serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt") == []
    with zipfile.ZipFile(tmp_path / "x.pt") as archive:
        assert json.loads(archive.read("archive/.rushlight_classes")) == {f"{__name__}.Point": ["x", "y"]}


def test_the_older_layout_cannot_describe_classes():
    for value in (Point(1, 2), Color.RED):
        with pytest.raises(TypeError, match=r"cannot store the class .*\n.*add_safe_globals"):
            through(value, _use_new_zipfile_serialization=False)
    with serialization.safe_globals([Point]):
        assert type(through(Point(1, 2), _use_new_zipfile_serialization=False)) is Point


@pytest.mark.parametrize(
    "classes",
    [
        b"[]",
        b"{",
        b'{"m.T": 1}',
        b'{"m.T": [1]}',
        b'{"m.T": ["x", "x"]}',
        b'{"m.T": ["x=print(1)", "y"]}',
        b'{"m.T": ["_x", "y"]}',
        b'{"m.T": ["x"]}',
        b'{"m.T": null}',
        b'{"m.T y": ["x", "y"]}',
        b'{"os.system": ["x", "y"]}',
        json.dumps({"m.T": ["x", "y"], **{f"m.T{i}": [] for i in range(100_000)}}).encode(),
    ],
)
def test_descriptions_that_no_writer_makes(classes):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("archive/data.pkl", b"\x80\x02cm\nT\nK\x01K\x02\x86\x81.")
        written.writestr("archive/.rushlight_classes", classes)
    with pytest.raises(CheckpointError):
        load(io.BytesIO(file.getvalue()))


def test_a_described_name_runs_nothing():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("archive/data.pkl", b"\x80\x02cos\nsystem\nX\x04\0\0\0echo\x85R.")
        written.writestr("archive/.rushlight_classes", b'{"os.system": ["command"]}')
    assert load(io.BytesIO(file.getvalue())) == ("echo",)


# Storages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False])
def test_storages(zipped):
    tensor = core.arange(4, dtype=core.float32)
    bytes_alone = core.arange(3, dtype=core.uint8).untyped_storage()
    value = {"typed": tensor.storage(), "tensor": tensor[1:], "bytes": bytes_alone}
    if not zipped:
        with pytest.raises(TypeError, match="PyTorch's file format before"):
            through(value, _use_new_zipfile_serialization=False)
        del value["bytes"]
    found = through(value, format="pytorch", _use_new_zipfile_serialization=zipped)
    assert type(found["typed"]) is core.TypedStorage
    assert list(found["typed"]) == [0, 1, 2, 3]
    assert found["tensor"].tolist() == [1, 2, 3]
    assert found["tensor"].data_ptr() == found["typed"].untyped().data_ptr() + 4
    if zipped:
        assert type(found["bytes"]) is core.UntypedStorage
        assert bytes(memoryview(found["bytes"])) == b"\0\1\2"
        shared = through([tensor, tensor.untyped_storage()], format="pytorch")
        assert shared[0].tolist() == [0, 1, 2, 3]
        assert shared[0].untyped_storage().data_ptr() == shared[1].data_ptr()


def test_storages_that_cannot_be_saved():
    tensor = core.arange(4, dtype=core.float32)
    with pytest.raises(ValueError, match="also saved by a tensor or storage of another dtype"):
        through([tensor.untyped_storage(), tensor.storage()], format="pytorch")
    flags = tensor > 1
    with pytest.raises(ValueError, match="as bools and as another dtype"):
        through([flags, flags.untyped_storage()], format="pytorch")
    with pytest.raises(TypeError, match="which is not data"):
        through(tensor.untyped_storage(), format="safetensors")


# Files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_several_files_of_the_older_layout_in_one_stream(kind, tmp_path):
    values = [{"a": 1}, [core.ones(2).tolist(), "b"], core.arange(3).tolist()]
    with open(tmp_path / "x", "w+b") if kind == "file" else io.BytesIO() as stream:
        stream.write(b"before")
        for value in values:
            save([value, core.ones(3)], stream, _use_new_zipfile_serialization=False)
        stream.seek(6)
        for value in values:
            assert load(stream)[0] == value
        assert stream.read() == b""
        stream.seek(6)
        data = stream.read()
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CheckpointError, match="bytes after the last storage"):
        load(tmp_path / "x")


def test_an_entry_that_is_encrypted_where_it_lies():
    file = io.BytesIO()
    save({"a": 1}, file, format="pytorch")
    for position, flag, what in (
        (6, 1, "encrypted"),
        (8, 8, "compressed, but the archive's central directory says"),
    ):
        data = bytearray(file.getvalue())
        data[position] |= flag
        with pytest.raises(CheckpointError, match=what):
            load(io.BytesIO(bytes(data)))


def test_a_device_that_is_not_here(tmp_path):
    with contextlib.suppress(RuntimeError, AssertionError):
        core.ones(1, device="cuda:0")
        pytest.skip("needs a machine without CUDA")
    file = io.BytesIO()
    save(core.ones(2), file)
    size = struct.unpack("<Q", file.getvalue()[:8])[0]
    header = json.loads(file.getvalue()[8 : 8 + size])
    document = json.loads(header["__metadata__"]["rushlight"])
    document["tensors"][0]["device"] = "cuda:0"
    header["__metadata__"]["rushlight"] = json.dumps(document)
    header["__metadata__"]["rushlight.crc32"] = str(zlib.crc32(json.dumps(document).encode()))
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + file.getvalue()[8 + size :]
    with pytest.raises(
        CheckpointError, match=r"device 'cuda:0', which is not available(.|\n)*map_location='cpu'"
    ):
        load(io.BytesIO(data))
    assert load(io.BytesIO(data), map_location="cpu").tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="not available") as caught:
        load(io.BytesIO(data), map_location="cuda:0")
    assert not isinstance(caught.value, CheckpointError)


@pytest.mark.parametrize(
    "name", [b"cos\nsystem\n", b"cposix\nsystem\n", b"cbuiltins\neval\n", b"csubprocess\nPopen\n"]
)
def test_no_hint_how_to_allow_code(name):
    with pytest.raises(CheckpointError, match="do not load this file: it would run") as caught:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as written:
            written.writestr("archive/data.pkl", b"\x80\x02" + name + b"X\x01\0\0\0a\x85R.")
        load(io.BytesIO(file.getvalue()))
    assert "add_safe_globals" not in str(caught.value)
