from __future__ import annotations

import io
import json
import math
import os
import stat
import zlib
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import rushlight_core as core
from rushlight_nn import BatchNorm1d, Buffer, Linear, Parameter, Sequential, optim
from rushlight_nn.serialization import CheckpointError, container, load, save

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES += ["uint16", "uint32", "uint64"]
DTYPES += ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


def through(obj, **options):
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return load(file, **options)


def equal(a, b):
    if isinstance(a, core.Tensor):
        same_kind = type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        return same_kind and a.requires_grad == b.requires_grad and bool((a == b).all())
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    return a == b or (a != a and b != b)


# Values are loaded as they were saved -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 2), (), (0, 4)])
def test_tensors_of_every_dtype(dtype, shape):
    x = (core.randn(shape) * 3).abs().to(getattr(core, dtype))
    assert equal(through(x), x)


def test_extreme_values_keep_their_bits():
    x = np.array([0x7FC00001, 0x80000000, 0x7F800000, 1], np.uint32).view(np.float32)
    y = through(core.from_numpy(x.copy()))
    np.testing.assert_array_equal(y.numpy().view(np.uint32), x.view(np.uint32))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.just("!") | st.integers() | st.none(), inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4).map(OrderedDict)
    ),
    max_leaves=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(plain)
def test_nested_containers(value):
    assert equal(through(value), value)


def test_other_values():
    value = {
        "dtype": core.bfloat16,
        "device": core.device("cpu"),
        "layouts": [core.strided, core.sparse_coo, core.sparse_csr, core.jagged],
        "formats": [core.contiguous_format, core.preserve_format, core.channels_last],
        "size": core.Size([2, 3]),
        (1, 2.5): "a tuple as a key",
        "parameter": Parameter(core.ones(2)),
        "frozen": Parameter(core.ones(2), requires_grad=False),
        "leaf": core.ones(2, requires_grad=True),
        "transposed": core.arange(6).reshape(2, 3).t(),
        "-0": -0.0,
    }
    result = through(value)
    assert equal(result, value)
    assert result["layouts"][1] is core.sparse_coo
    assert [type(f) for f in result["formats"]] == [core.memory_format] * 3
    assert math.copysign(1, result["-0"]) == -1
    buffer = through(Buffer(core.ones(1), persistent=False))
    assert type(buffer) is Buffer
    assert buffer.persistent is False


def test_arrays_and_their_numbers():
    state = np.random.default_rng(0).bit_generator.state, np.random.RandomState(0).get_state()
    value = {
        "state": state[1],
        "swapped": np.arange(3, dtype=">f8")[::-1],
        "number": np.float32(1.5),
        "zero": np.array(2, dtype=np.int16),
        "same": [np.ones(2, dtype=bool)] * 2,
    }
    found = through(value)
    assert found["state"][0] == "MT19937"
    np.testing.assert_array_equal(found["state"][1], state[1][1])
    assert found["state"][1].dtype == np.uint32
    np.random.RandomState(1).set_state(found["state"])
    assert found["swapped"].tolist() == [2.0, 1.0, 0.0]
    assert found["swapped"].dtype == np.float64
    assert type(found["number"]) is np.float32
    assert found["number"] == 1.5
    assert (found["zero"].shape, found["zero"].dtype, found["zero"].item()) == ((), np.int16, 2)
    found["same"][0][0] = False
    assert found["same"][1].tolist() == [True, True]


def test_a_training_run_goes_on(tmp_path):
    def build():
        model = Sequential(Linear(3, 4), BatchNorm1d(4), Linear(4, 1))
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        return model, optimizer, optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])

    def train(parts, seed):
        rng = np.random.default_rng(seed)
        for p in parts[0].parameters():
            p.grad = core.from_numpy(rng.normal(size=tuple(p.shape)).astype(np.float32))
        parts[1].step()
        parts[2].step()

    names = ("model", "optimizer", "scheduler")
    parts = build()
    for seed in range(3):
        train(parts, seed)
    save({name: part.state_dict() for name, part in zip(names, parts, strict=True)}, tmp_path / "run.ckpt")
    others = build()
    state = load(tmp_path / "run.ckpt")
    for name, part in zip(names, others, strict=True):
        part.load_state_dict(state[name])
    assert state["model"]._metadata == parts[0].state_dict()._metadata
    for seed in range(3, 6):
        train(parts, seed)
        train(others, seed)
    assert equal(parts[0].state_dict(), others[0].state_dict())
    assert parts[2].get_last_lr() == others[2].get_last_lr()


def test_loading_again_and_again_does_not_touch_the_file(tmp_path):
    path = tmp_path / "x"
    save({"a": core.ones(3)}, path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    for _ in range(2):
        load(path)["a"].fill_(5)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert float(load(path)["a"].sum()) == 3.0


# Shared memory ----------------------------------------------------------------------------------------------


def test_shared_memory_is_stored_once_and_shared_again():
    base = core.randn(100, 100)
    value = {"t": base.t(), "row": base[1], "base": base, "list": [base], "tail": base.reshape(-1)[5000:]}
    file = io.BytesIO()
    save(value, file)
    assert file.tell() < 100 * 100 * 4 + 3000
    value["same"] = base
    file = io.BytesIO()
    save(value, file)
    # The tensor is stored once for each of its two names, so that every reader finds both.
    assert file.tell() < 2 * 100 * 100 * 4 + 3000
    file.seek(0)
    result = load(file)
    assert equal(result, value)
    assert result["same"] is result["base"]
    result["row"].fill_(7.0)
    assert float(result["base"][1].min()) == 7.0
    assert float(result["t"][:, 1].min()) == 7.0
    result["tail"].fill_(8.0)
    assert float(result["base"][60].min()) == 8.0


def test_overlapping_slices_without_their_base():
    base = core.arange(1000)
    result = through([base[100:200], base[150:250], base[300:310], base[160:170:3]])
    assert [t.tolist() for t in result] == [
        list(range(100, 200)),
        list(range(150, 250)),
        list(range(300, 310)),
        [160, 163, 166, 169],
    ]
    result[0].fill_(-1)
    assert result[1].tolist() == [-1] * 50 + list(range(200, 250))
    assert result[3].tolist() == [-1] * 4


def test_a_slice_does_not_take_its_base_along():
    file = io.BytesIO()
    save([core.zeros(100_000)[5:8], core.zeros(10).expand(4, 10)], file)
    assert file.tell() < 2000


def test_tied_weights_stay_tied():
    net = Sequential(Linear(4, 4), Linear(4, 4))
    net[1].weight = net[0].weight
    state = through(net.state_dict())
    assert state["0.weight"].data_ptr() == state["1.weight"].data_ptr()


def test_one_memory_as_two_dtypes_is_refused():
    x = core.zeros(4)
    with pytest.raises(ValueError, match="clone"):
        save([x, x.view(core.int32)], io.BytesIO())


# The format -------------------------------------------------------------------------------------------------


def test_other_programs_can_read_it(tmp_path):
    net = Sequential(Linear(3, 2), BatchNorm1d(2))
    save({"model": net.state_dict(), "epoch": 3}, tmp_path / "x")
    arrays = load_file(tmp_path / "x")
    assert sorted(arrays) == sorted("model." + name for name in net.state_dict())
    np.testing.assert_array_equal(arrays["model.0.weight"], net[0].weight.detach().numpy())


def test_files_of_other_programs_can_be_read(tmp_path):
    arrays = {
        "b": np.arange(6, dtype=np.int16).reshape(2, 3),
        "a": np.ones(3, np.float64),
        "c": np.array([True]),
    }
    save_file(arrays, tmp_path / "x", metadata={"format": "np"})
    result = load(tmp_path / "x")
    assert sorted(result) == ["a", "b", "c"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(result[name].numpy(), array)


def test_names_do_not_collide():
    value = {"a.b": core.zeros(1), "a": {"b": core.ones(1)}, "__metadata__": core.full((1,), 2.0)}
    assert equal(through(value), value)


# Bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"f": lambda: 1}, r"save: f is a builtins.function.*\n.*hold no code"),
        ([memoryview(b"")], "save: 0 is a builtins.memoryview"),
        ({"model": Linear(1, 1)}, r"save: model is a .*Linear.*\n.*state_dict"),
        ({"a": {"b": np.datetime64("2020")}}, r"save: a.b is a numpy.datetime64.*\n.*plain int, float"),
        ([np.array(["a"])], r"numpy.ndarray.*\n.*from_numpy"),
        ({object(): 1}, "builtins.object"),
    ],
)
def test_what_cannot_be_saved(value, text, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=text):
        save(value, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_long_integers():
    long = 10**5000  # Python's str and int do not convert decimal numbers of more than 4300 digits
    for value in ([long, -long, 2**2048, 2**2048 - 1, 1 - 2**2048], {long: {"a": long}}, {(1, long): [long]}):
        assert through(value) == value
    assert through(range(long)) == range(long)
    tensors = through({long: core.ones(2), (long,): core.zeros(1)})
    assert tensors[long].tolist() == [1.0, 1.0]
    assert tensors[(long,)].tolist() == [0.0]
    with pytest.raises(TypeError, match=r"key\.0 is a builtins\.object"):
        save({long: [object()]}, io.BytesIO())


def test_containers_that_contain_themselves():
    a = [1]
    a.append({"a": a})
    with pytest.raises(ValueError, match=r"1\.a contains itself"):
        save(a, io.BytesIO())
    shared = [1]
    assert through([shared, shared]) == [[1], [1]]
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        save(deep, io.BytesIO())


@pytest.fixture(scope="module")
def good():
    file = io.BytesIO()
    base = core.randn(3, 4)
    save({"a": base, "b": base[1], "n": [1, 2.5, None], "flag": core.tensor([True, False]), 3: "x"}, file)
    return file.getvalue()


def test_every_truncation_is_noticed(good, tmp_path):
    path = tmp_path / "cut.ckpt"
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(CheckpointError, match=r"cut\.ckpt"):
            load(path)
    path.write_bytes(good + b"\0")
    with pytest.raises(CheckpointError, match="truncated or damaged"):
        load(path)
    assert path.read_bytes() == good + b"\0"


@pytest.mark.parametrize("weights_only", [True, False])
def test_empty_files(weights_only, tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    for file in (path, io.BytesIO()):
        with pytest.raises(EOFError, match="the file is empty") as caught:
            load(file, weights_only=weights_only)
        assert isinstance(caught.value, CheckpointError)


def test_every_altered_byte_is_noticed(good, rng):
    for position in range(len(good)):
        data = bytearray(good)
        data[position] ^= 1 << int(rng.integers(8))
        with pytest.raises(CheckpointError):
            load(io.BytesIO(bytes(data)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_load_or_raise_the_one_error(data):
    with pytest.raises(CheckpointError):
        load(io.BytesIO(data))


def crafted(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return io.BytesIO(len(text).to_bytes(8, "little") + text + data)


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ({"a": entry(offsets=(4, 8))}, 8),
        ({"a": entry(), "b": entry()}, 4),
        ({"a": entry(), "b": entry(offsets=(6, 10))}, 10),
        ({"a": entry()}, 8),
        ({"a": entry()}, 0),
        ({"a": entry(offsets=(4, 0))}, 4),
        ({"a": entry(shape=(2,))}, 4),
        ({"a": entry(shape=(2**40, 2**40))}, 4),
        ({"a": entry(shape=(-1,))}, 4),
        ({"a": entry(shape=(1.0,))}, 4),
        ({"a": entry(shape=(2**64,))}, 4),
        ({"a": entry(dtype="F31")}, 4),
        ({"a": entry(dtype="F6_E2M3", offsets=(0, 1))}, 1),
        ({"a": entry(shape=(2**62, 0), offsets=(0, 0))}, 0),
        ({"a": entry(shape=(1,) * 1000)}, 4),
        ({"a": entry(dtype=["F32"])}, 4),
        ({"a": 3}, 4),
        ({"__metadata__": {"a": 1}}, 0),
        ({"__metadata__": 3}, 0),
        (b'{"a": ', 0),
        (b"[1, 2]", 0),
        (b'{"\xff": 1}', 0),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0),
        ({"a": entry(dtype="BOOL", shape=(4,))}, 4),
    ],
)
def test_crafted_headers(header, size):
    with pytest.raises(CheckpointError):
        load(crafted(header, b"\x07" * size))


def with_document(document):
    text = json.dumps(document)
    metadata = {"rushlight": text, "rushlight.crc32": str(zlib.crc32(text.encode()))}
    file = io.BytesIO()
    container.write(file, {"t": core.zeros(4)}, metadata)
    file.seek(0)
    return file


def document(root=None, **changes):
    crc = zlib.crc32(b"\0" * 16, zlib.crc32(b"F32[4]"))
    tensors = [{"name": "t", "view": changes.pop("view")} if "view" in changes else {"name": "t"}]
    return {
        "version": 1,
        "root": root or {"!": "tensor", "number": 0},
        "tensors": tensors,
        "crc32": {"t": crc},
        **changes,
    }


def test_a_crafted_document_can_be_right():
    assert load(with_document(document())).tolist() == [0.0] * 4
    assert load(with_document(document(view=[[2, 2], [1, 1], 1]))).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    "bad",
    [
        document(version=2),
        document(tensors=[]),
        document(tensors=[{"name": "other"}]),
        document(tensors=3),
        document(crc32={}),
        document(crc32=[]),
        document({"!": "tensor", "number": -1}),
        document({"!": "tensor", "number": "0"}),
        document({"!": "tensor"}),
        document({"!": "class", "value": "os.system"}),
        document({"!": "int", "value": 3}),
        document({"!": "int", "value": "1.5"}),
        document({"!": "dtype", "value": "ones"}),
        document({"!": "dtype", "value": "no_such"}),
        document({"!": "device", "value": "abacus"}),
        document({"!": "dict", "items": [[{"!": "dict", "items": [[1, 2]]}, 1]]}),
        document({"!": "dict", "items": 3}),
        document({"!": "tuple"}),
        document({"!": ["tuple"]}),
        document(view=[[4], [1], 1]),
        document(view=[[2**62, 2**62], [0, 0], 0]),
        document(view=[[1] * 1000, [1] * 1000, 0]),
        document(tensors=[{"name": "t", "device": "abacus"}]),
        document(tensors=[{"name": "t", "device": 3}]),
        document(view=[[2**62, 2], [2**62, 1], 0]),
        document(view=[[2], [-1], 1]),
        document(view=[[2], [1, 1], 0]),
        document(view=[[0], [1], 0]),
        document(view=[[1], [1], -1]),
        document(view="abc"),
        {"version": 1},
        [1],
    ],
)
def test_crafted_documents(bad):
    with pytest.raises(CheckpointError):
        load(with_document(bad))


@pytest.mark.parametrize("length", [0x280, 0x04034B50 % 2**16])
def test_a_header_whose_length_looks_like_a_pickle(length):
    header = json.dumps({"a": entry()}).encode()
    found = load(crafted(header + b" " * (length - len(header)), b"\0" * 4))
    assert found["a"].tolist() == [0.0]


def test_missing_files_are_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(CheckpointError, match="the path is a directory, not a file"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        save(1, tmp_path / "no" / "folder")
    with pytest.raises(IsADirectoryError):
        save(1, tmp_path)


# Writing ----------------------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    save({"a": core.ones(2)}, path)
    before = path.read_bytes()
    written = container.memory_of

    def fails(tensor):
        if float(tensor.sum()) == 6.0 and fails.armed:
            raise OSError(28, "No space left on device")
        fails.armed = fails.calls >= 1
        fails.calls += 1
        return written(tensor)

    fails.armed, fails.calls = False, 0
    monkeypatch.setattr(container, "memory_of", fails)
    with pytest.raises(OSError, match="No space left"):
        save({"a": core.full((2,), 1.0), "b": core.full((2,), 3.0)}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]


def test_links_and_permissions_are_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    save(1, target)
    os.chmod(target, 0o640)
    link.symlink_to(target)
    save(2, link)
    assert link.is_symlink()
    assert load(target) == 2
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "target"]


def test_relative_paths_and_special_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save([1], "here.ckpt")
    assert load("here.ckpt") == [1]
    save([1], os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


# Devices ----------------------------------------------------------------------------------------------------


def test_map_location():
    value = {"a": core.ones(2), "b": core.zeros(2)}
    for where in ("cpu", core.device("cpu"), {"cuda:0": "cpu"}, lambda tensor, device: None):
        assert equal(through(value, map_location=where), value)
    seen = []

    def doubled(tensor, device):
        seen.append(device)
        return tensor * 2

    assert float(through(value, map_location=doubled)["a"].sum()) == 4.0
    assert seen == ["cpu", "cpu"]


def test_tensors_without_values_are_refused():
    with pytest.raises(ValueError, match="'meta'"):
        save([core.empty(2, device="meta")], io.BytesIO())


@pytest.mark.parametrize("format", ["safetensors", "pytorch"])
def test_what_is_written_to_an_open_file_can_be_read_by_its_name(tmp_path: Any, format: str) -> None:
    with open(tmp_path / "open.pt", "wb") as file:
        save({"x": core.ones(2)}, file, format=format)
        assert load(tmp_path / "open.pt")["x"].tolist() == [1, 1]
