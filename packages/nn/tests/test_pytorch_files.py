"""Files that PyTorch wrote, recorded by `reference/write_checkpoints.py`, and files written for PyTorch."""

from __future__ import annotations

import argparse
import collections
import datetime
import io
import pathlib
import zipfile

import numpy as np
import pytest

import rushlight_core as core
from rushlight_nn import BatchNorm2d, Buffer, Conv2d, Flatten, Linear, Module, Parameter, Sequential, optim
from rushlight_nn.serialization import CheckpointError, get_unsafe_globals_in_checkpoint, load, save

FILES = pathlib.Path(__file__).parent / "reference" / "checkpoints"
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


def through(obj, legacy):
    file = io.BytesIO()
    save(obj, file, format="pytorch", _use_new_zipfile_serialization=not legacy)
    file.seek(0)
    return load(file)


def check_values(found, dtypes):
    assert list(found["dtypes"]) == dtypes
    for name in dtypes:
        tensor = found["dtypes"][name]
        assert tensor.dtype == getattr(core, name)
        assert tensor.tolist() == [0, 1, 1]
    base = found["base"]
    assert base.tolist() == np.arange(12.0).reshape(3, 4).tolist()
    assert found["transposed"].stride() == (1, 4)
    found["row"].fill_(7.0)
    assert base[1].tolist() == [7.0] * 4
    assert found["transposed"][:, 1].tolist() == [7.0] * 4
    assert float(found["number"]) == 3.5
    assert tuple(found["empty"].shape) == (0, 3)
    assert found["expanded"].tolist() == [1.0] * 4
    assert (found["meta"].device.type, tuple(found["meta"].shape)) == ("meta", (2, 3))
    assert type(found["parameter"]) is Parameter
    assert found["parameter"].requires_grad
    assert not found["frozen"].requires_grad
    assert type(found["buffer"]) is Buffer
    assert type(found["leaf"]) is core.Tensor
    assert found["leaf"].requires_grad
    assert found["plain"] == [
        None,
        True,
        False,
        0,
        255,
        256,
        65536,
        -1,
        2**40,
        -(2**70),
        2.5,
        "é",
        (1, (2,)),
        (),
    ]
    assert found["set"] == {1, "a"}
    assert found["bytes"] == b"a\xff"
    assert found["bytearray"] == bytearray(b"b")
    assert found["complex"] == 1 + 2j
    assert found["ordered"] == collections.OrderedDict(a=1)
    assert type(found["counter"]) is collections.Counter
    assert found["counter"] == {"a": 2, "b": 1}
    assert found["dtype"] == core.bfloat16
    assert found["device"] == core.device("cuda", 1)
    assert type(found["size"]) is core.Size
    assert found["size"] == (2, 3)


@pytest.mark.parametrize("again", [False, True])
def test_values(again):
    found = load(FILES / "values.pt")
    check_values(through(found, False) if again else found, [*DTYPES, "uint16", "uint32", "uint64"])


@pytest.mark.parametrize("again", [False, True])
def test_values_in_the_layout_of_before_1_6(again):
    found = load(FILES / "values_legacy.pt")
    check_values(through(found, True) if again else found, DTYPES)


@pytest.mark.parametrize("legacy", [False, True])
def test_names_of_layouts(legacy):
    layouts = [core.strided, core.sparse_coo, core.sparse_bsr, core.jagged]
    assert all(a is b for a, b in zip(through(layouts, legacy), layouts, strict=True))


@pytest.mark.parametrize("again", [False, True])
def test_float8(again):
    found = load(FILES / "float8.pt")
    found = through(found, False) if again else found
    for name in FLOAT8:
        assert found[name].dtype == getattr(core, name)
        assert found[name].view(core.uint8).tolist() == list(range(256))
    found["row"].zero_()
    assert not found["float8_e5m2"][16:32].any()


@pytest.mark.parametrize("again", [None, False, True])
def test_more_values(again):
    found = load(FILES / "more.pt")
    found = found if again is None else through(found, again)
    assert found["defaultdict"]["b"] == []
    assert dict(found["defaultdict"]) == {"a": [1], "b": []}
    assert found["frozenset"] == frozenset([1])
    assert found["namespace"] == argparse.Namespace(lr=0.5, name="x")
    assert found["path"] == pathlib.PurePosixPath("a/b")
    zone = datetime.timezone(datetime.timedelta(hours=2), "X")
    assert found["datetime"] == datetime.datetime(2020, 1, 2, 3, 4, 5, 6, zone)
    assert found["datetime"].tzname() == "X"
    assert found["date"] == datetime.date(2021, 2, 3)
    assert found["time"] == datetime.time(1, 2, 3, 4)
    assert found["timedelta"] == datetime.timedelta(1, 2, 3)
    np.testing.assert_array_equal(found["array"], np.arange(6, dtype=np.int16).reshape(2, 3))
    assert found["array"].dtype == np.int16
    np.testing.assert_array_equal(found["fortran"], np.arange(6.0).reshape(2, 3))
    assert found["swapped"].tolist() == [0, 1, 2]
    assert type(found["scalar"]) is np.float32
    assert found["scalar"] == 1.5
    assert found["deque"] == collections.deque([1, 2])
    assert found["deque"].maxlen == 5


@pytest.mark.parametrize("name", ["conjugated.pt", "conjugated_legacy.pt"])
def test_tensors_with_the_conjugate_or_negative_bit(name):
    found = load(FILES / name)
    assert found["base"].tolist() == [1 + 2j, 3 - 4j, 5j]
    assert found["view"].tolist() == [1 - 2j, 3 + 4j, -5j]
    assert found["row"].tolist() == [3 + 4j, -5j]
    assert found["expanded"].tolist() == [1 - 2j] * 4
    assert found["negative"].tolist() == [-2.0, 4.0, -5.0]
    assert type(found["parameter"]) is Parameter
    assert found["parameter"].requires_grad
    assert found["parameter"].tolist() == [1 - 2j, 3 + 4j, -5j]


@pytest.mark.parametrize("name", ["quantized.pt", "quantized_legacy.pt"])
def test_quantized_tensors_are_refused(name):
    with pytest.raises(CheckpointError, match=r"holds a quantized tensor.*\n.*save tensor\.dequantize\(\)"):
        load(FILES / name)
    assert get_unsafe_globals_in_checkpoint(FILES / name) == []


class Tied(Module):
    def __init__(self):
        super().__init__()
        from rushlight_nn import Embedding

        self.embedding = Embedding(5, 3)
        self.head = Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight


@pytest.mark.parametrize("name", ["training.pt", "training_legacy.pt"])
def test_a_training_run_of_pytorchs(name):
    state = load(FILES / name)
    model = Sequential(Conv2d(2, 3, 3), BatchNorm2d(3), Flatten(), Linear(12, 2))
    optimizer = optim.AdamW(model.parameters(), lr=0.5)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, [1, 3])
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    assert int(model[1].num_batches_tracked) == 2
    assert state["model"]._metadata["1"] == {"version": 2}
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.01])
    assert float(optimizer.state[model[0].weight]["step"]) == 2.0
    assert scheduler.last_epoch == 2
    tied = Tied()
    tied.load_state_dict(state["tied"], assign=True)
    first, second = state["tied"].values()
    assert first.data_ptr() == second.data_ptr()
    # Write the same state, and read it again.
    again = through(state, legacy="legacy" in name)
    assert list(again) == list(state)
    for key, value in state["model"].items():
        assert bool((again["model"][key] == value).all())
    assert again["model"]._metadata == state["model"]._metadata
    assert again["scheduler"] == state["scheduler"]
    first, second = again["tied"].values()
    assert first.data_ptr() == second.data_ptr()


def test_names_choose_the_format(tmp_path):
    for name in ("x.pt", "x.pth", "x.ckpt", "x.bin"):
        save({"a": core.ones(2)}, tmp_path / name)
        assert zipfile.ZipFile(tmp_path / name).testzip() is None
        assert load(tmp_path / name)["a"].tolist() == [1.0, 1.0]
    for name in ("x.safetensors", "x", "x.pt.tmp"):
        save({"a": core.ones(2)}, tmp_path / name)
        assert not zipfile.is_zipfile(tmp_path / name)
    save(1, tmp_path / "x.pt", format="safetensors")
    assert not zipfile.is_zipfile(tmp_path / "x.pt")
    save(1, tmp_path / "x", format="pytorch")
    assert zipfile.is_zipfile(tmp_path / "x")
    for arguments in ({"format": "onnx"}, {"format": "safetensors", "_use_new_zipfile_serialization": False}):
        with pytest.raises(ValueError, match="save"):
            save(1, tmp_path / "y", **arguments)
    assert not (tmp_path / "y").exists()


def test_only_what_tensors_use_is_stored():
    base = core.arange(100_000.0)
    file = io.BytesIO()
    save({"a": base[50_000:50_010], "b": base[50_008:50_020:2]}, file, format="pytorch")
    assert file.tell() < 3000
    file.seek(0)
    found = load(file)
    found["a"][8] = -1.0
    assert found["b"].tolist() == [-1.0, 50_010.0, 50_012.0, 50_014.0, 50_016.0, 50_018.0]


def test_memory_as_two_dtypes():
    x = core.zeros(5)
    found = through({"i": x.view(core.int32)[3:], "x": x, "h": x.view(core.int16)[:2]}, False)
    found["x"][3] = 1.0
    assert found["i"].tolist() == [0x3F800000, 0]
    with pytest.raises(TypeError, match=r"before version 1\.6"):
        through([x, x.view(core.int32)], True)
    with pytest.raises(ValueError, match="clone"):
        through([x, x.view(core.uint8), x.view(core.uint8).view(core.bool)], False)


def test_objects_that_occur_twice_are_one():
    shared, key = [1], "name"
    value = {"a": shared, "b": shared, key: key, "t": (shared, shared)}
    value["self"] = value
    found = through(value, False)
    found["a"].append(2)
    assert found["b"] == [1, 2]
    assert found["t"][1] is found["a"]
    assert found["self"] is found
    assert found[key] == key


def test_attributes_of_tensors():
    tensor, parameter = core.ones(2), Parameter(core.ones(1))
    tensor.tag, parameter.sharded = "x", [1]
    found = through([tensor, parameter], False)
    assert found[0].tag == "x"
    assert found[1].sharded == [1]
    assert type(found[1]) is Parameter


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "module.pt",
            r"torch\.nn\.modules\.container\.Sequential.*\n.*state_dict\(\), path\), and load it with model\.load",
        ),
        ("script.pt", r"TorchScript.*\n.*state_dict"),
    ],
)
@pytest.mark.parametrize("weights_only", [True, False, None])
def test_files_that_hold_more_than_data(name, text, weights_only):
    with pytest.raises(CheckpointError, match=text):
        load(FILES / name, weights_only=weights_only)


def test_a_sparse_tensor():
    found = load(FILES / "sparse.pt")
    assert found.is_sparse
    assert core.equal(found.to_dense(), core.eye(2))


@pytest.mark.parametrize("name", ["x.pt", "x.safetensors"])
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_sparse_tensors_of_every_layout(layout, name, tmp_path):
    plain = core.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 3.0, 0.0]])
    sparse = plain.to_sparse(
        layout=getattr(core, f"sparse_{layout}"), blocksize=(1, 2) if layout.startswith("b") else None
    )
    save({"s": sparse}, tmp_path / name)
    found = load(tmp_path / name)["s"]
    assert found.layout is sparse.layout
    assert found._nnz() == sparse._nnz()
    assert core.equal(found.to_dense(), plain)


def test_names_that_are_refused(tmp_path):
    assert get_unsafe_globals_in_checkpoint(FILES / "values.pt") == []
    assert get_unsafe_globals_in_checkpoint(FILES / "values_legacy.pt") == []
    assert get_unsafe_globals_in_checkpoint(FILES / "module.pt") == [
        "torch.nn.modules.container.Sequential",
        "torch.nn.modules.linear.Linear",
    ]
    save(1, tmp_path / "x")
    with pytest.raises(CheckpointError, match="not a file of PyTorch"):
        get_unsafe_globals_in_checkpoint(tmp_path / "x")


def test_modules_are_refused_with_what_to_write():
    for options in ({"format": "pytorch"}, {"format": "safetensors"}):
        with pytest.raises(
            TypeError, match=r"net is a .*Linear.*\n.*save\(model\.state_dict\(\), path\).*load_state_dict"
        ):
            save({"net": Linear(1, 1)}, io.BytesIO(), **options)


def test_map_location_for_storages():
    seen = []

    def where(storage, device):
        seen.append((storage.dtype, device))
        return storage

    for name in ("values.pt", "values_legacy.pt"):
        found = load(FILES / name, map_location=where)
        assert found["base"].tolist() == np.arange(12.0).reshape(3, 4).tolist()
    assert {device for _, device in seen} == {"cpu"}
    assert load(FILES / "values.pt", map_location="cpu")["number"].device.type == "cpu"


# Altered files ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["zip", "legacy"])
def good(request):
    file = io.BytesIO()
    base = core.arange(6.0).reshape(2, 3)
    legacy = request.param == "legacy"
    value = {"a": base, "b": base[1], "n": [1, 2.5, None], "flag": core.tensor([True, False]), 3: b"x"}
    save(value, file, format="pytorch", _use_new_zipfile_serialization=not legacy)
    return legacy, file.getvalue()


def test_every_truncation_is_noticed(good):
    _, data = good
    for length in range(len(data)):
        with pytest.raises(CheckpointError):
            load(io.BytesIO(data[:length]))
    with pytest.raises(CheckpointError):
        load(io.BytesIO(data + b"\0"))


def test_altered_bytes(good, rng):
    legacy, data = good
    altered = 0
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << int(rng.integers(8))
        try:
            load(io.BytesIO(bytes(changed)))
        except CheckpointError:
            altered += 1
    # Legacy files have no checksums, and padding and dates in archives may have any values.
    assert altered > len(data) * (0.5 if legacy else 0.6)


def test_every_altered_byte_of_a_value_is_noticed(rng):
    file = io.BytesIO()
    save({"a": core.arange(6.0), "b": ["text", 3]}, file, format="pytorch")
    data = file.getvalue()
    archive = zipfile.ZipFile(io.BytesIO(data))
    for entry in archive.infolist():
        begin = data.index(entry.filename.encode()) + len(entry.filename)
        begin += 64 - begin % 64 if begin % 64 else 0
        for position in range(begin, begin + entry.file_size):
            changed = bytearray(data)
            changed[position] ^= 1 << int(rng.integers(8))
            with pytest.raises(CheckpointError):
                load(io.BytesIO(bytes(changed)))


def test_files_without_checksums_can_be_read():
    file = io.BytesIO()
    save({"a": core.ones(2)}, file, format="pytorch")
    data = file.getvalue()
    begin = data.index(b"\0\0\x80\x3f\0\0\x80\x3f")
    changed = data[: begin + 3] + b"\x40" + data[begin + 4 :]
    with pytest.raises(CheckpointError, match=r"checksum does not match\n.*verify=False"):
        load(io.BytesIO(changed))
    assert load(io.BytesIO(changed), verify=False)["a"].tolist() == [4.0, 1.0]


def test_verify_of_what_has_no_checksums():
    with pytest.raises(CheckpointError, match="verify=True"):
        load(FILES / "values_legacy.pt", verify=True)
    with pytest.raises(CheckpointError, match=r"before 1\.6"):
        load(FILES / "values_legacy.pt", mmap=True)
