"""Tensors over memory maps of files, files in several shards, and files that remain after a failed save."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import rushlight_core as core
from rushlight_nn import BatchNorm1d, Embedding, Linear, Module, Sequential
from rushlight_nn.serialization import CheckpointError, load, save, shards
from rushlight_nn.serialization.replacing import replace_file

NAMES = ["x.pt", "x.safetensors"]


def state():
    base = core.arange(5000.0)
    return {
        "base": base,
        "part": base[10:20],
        "flag": core.tensor([True, False, True]),
        "odd": core.ones(3, dtype=core.uint8),
    }


# Mapping ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("verify", [None, True, False])
def test_mapped_tensors_are_those_that_are_read(name, verify, tmp_path):
    save({**state(), "c": core.ones(3, dtype=core.complex128), "none": core.empty(0)}, tmp_path / name)
    mapped, read = load(tmp_path / name, mmap=True, verify=verify), load(tmp_path / name, verify=verify)
    assert list(mapped) == list(read)
    for key in mapped:
        assert mapped[key].dtype == read[key].dtype
        assert mapped[key].tolist() == read[key].tolist()
    mapped["base"][10] = -1.0
    assert float(mapped["part"][0]) == -1.0


@pytest.mark.parametrize("name", NAMES)
def test_writing_to_a_map_changes_a_copy(name, tmp_path):
    save(state(), tmp_path / name)
    before = (tmp_path / name).read_bytes()
    first, second = load(tmp_path / name, mmap=True), load(tmp_path / name, mmap=True)
    first["base"].fill_(7.0)
    assert first["part"].tolist() == [7.0] * 10
    assert float(second["base"][3]) == 3.0
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("name", NAMES)
def test_maps_for_reading_only(name, tmp_path):
    save(state(), tmp_path / name)
    found = load(tmp_path / name, mmap="r")
    assert float(found["base"].sum()) == 5000 * 4999 / 2
    with pytest.raises(RuntimeError, match=r"read.only"):
        found["base"].add_(1)


@pytest.mark.parametrize("name", NAMES)
def test_the_data_of_a_map_are_not_touched(name, tmp_path):
    count = 1 << 24
    save({"a": core.zeros(count)}, tmp_path / name)
    code = f"""
import rushlight_core, resource
from rushlight_nn import serialization
import safetensors
def resident():
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(("RssAnon", "RssFile")))
serialization.load({str(tmp_path / name)!r}, mmap=True)
before = resident()
found = serialization.load({str(tmp_path / name)!r}, mmap=True)
assert resident() - before < {count * 4 // 1024 // 20}, resident() - before
assert float(found["a"][-1]) == 0.0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_map_keeps_the_file_that_was_replaced(tmp_path):
    path = tmp_path / "x.pt"
    save({"a": core.zeros(100_000)}, path)
    found = load(path, mmap=True)
    save({"a": core.ones(100_000)}, path)
    assert float(found["a"].sum()) == 0.0
    assert float(load(path, mmap=True)["a"].sum()) == 100_000.0


@pytest.mark.parametrize("name", NAMES)
def test_when_checksums_are_compared(name, tmp_path):
    path = tmp_path / name
    save({"a": core.ones(4)}, path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"\0\0\x80\x3f", b"\0\0\x80\x40", 1))
    for options in ({}, {"verify": True}, {"mmap": True, "verify": True}):
        with pytest.raises(CheckpointError, match=r"checksum.* does not match"):
            load(path, **options)
    for options in ({"verify": False}, {"mmap": True}, {"mmap": True, "verify": False}):
        assert load(path, **options)["a"].tolist() == [4.0, 1.0, 1.0, 1.0]


def test_bools_are_checked_in_maps_too(tmp_path):
    for name in NAMES:
        save({"a": core.tensor([True] * 5)}, tmp_path / name)
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data.replace(b"\1\1\1\1\1", b"\1\1\7\1\1", 1))
        with pytest.raises(CheckpointError, match="bytes other than 0 and 1"):
            load(tmp_path / name, mmap=True)


def test_arguments_that_are_not_known(tmp_path):
    save(1, tmp_path / "x")
    with pytest.raises(TypeError, match="unknown argument 'mmmap'"):
        load(tmp_path / "x", mmmap=True)
    with pytest.raises(ValueError, match="mmap"):
        load(tmp_path / "x", mmap="w")
    with pytest.raises(ValueError, match="path"):
        load(io.BytesIO(), mmap=True)
    assert load(tmp_path / "x", encoding="latin1", weights_only=True) == 1


def test_open_files_are_read_from_where_they_are(tmp_path):
    for name in NAMES:
        save({"a": core.ones(3)}, tmp_path / name)
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(b"before" + data)
        with open(tmp_path / name, "rb") as file:
            file.read(6)
            assert load(file)["a"].tolist() == [1.0] * 3
        with open(tmp_path / name, "rb", buffering=0) as file:
            file.read(6)
            assert load(file)["a"].tolist() == [1.0] * 3


def test_states_are_assigned_without_a_copy(tmp_path):
    for name in NAMES:
        save(Sequential(Linear(300, 300), BatchNorm1d(300)).state_dict(), tmp_path / name)
        with core.device("meta"):
            net = Sequential(Linear(300, 300), BatchNorm1d(300))
        found = load(tmp_path / name, mmap=True)
        net.load_state_dict(found, assign=True)
        assert net[0].weight.data_ptr() == found["0.weight"].data_ptr()
        assert net[0].weight.requires_grad
        assert net[0](core.ones(1, 300)).shape == (1, 300)


# Names of every reader ----------------------------------------------------------------------------------------


class Tied(Module):
    def __init__(self):
        super().__init__()
        self.embedding = Embedding(50, 4)
        self.head = Linear(4, 50, bias=False)
        self.head.weight = self.embedding.weight


def test_tied_names_can_be_read_by_every_reader(tmp_path):
    save({"model": Tied().state_dict()}, tmp_path / "x")
    arrays = load_file(tmp_path / "x")
    assert sorted(arrays) == ["model.embedding.weight", "model.head.weight"]
    assert (arrays["model.embedding.weight"] == arrays["model.head.weight"]).all()
    found = load(tmp_path / "x")["model"]
    assert found["embedding.weight"].data_ptr() == found["head.weight"].data_ptr()


def test_an_altered_copy_is_noticed(tmp_path):
    weight = core.full((5,), 3.0)
    save({"a": weight, "b": weight}, tmp_path / "x")
    data = (tmp_path / "x").read_bytes()
    assert data.count(b"\0\0\x40\x40") == 10
    (tmp_path / "x").write_bytes(data[:-1] + b"\x41")
    with pytest.raises(CheckpointError, match="checksum of tensor 'b' does not match"):
        load(tmp_path / "x")


def test_a_name_is_that_of_the_tensor_and_not_of_a_view(tmp_path):
    base = core.arange(6.0).reshape(2, 3)
    save({"view": base.t(), "base": base}, tmp_path / "x")
    assert load_file(tmp_path / "x")["base"].tolist() == base.tolist()


# Shards -----------------------------------------------------------------------------------------------------


@pytest.fixture
def large():
    weight = core.arange(100.0)
    return {
        "model": {str(i): core.full((50,), float(i)) for i in range(6)},
        "tied": [weight],
        "again": weight,
        "epoch": 3,
    }


@pytest.mark.parametrize("mmap", [False, True])
def test_shards(large, mmap, tmp_path):
    path = tmp_path / "net.safetensors"
    save(large, path, max_shard_size=500)
    names = sorted(os.listdir(tmp_path))
    assert names == [*(f"net-{i:05}-of-00004.safetensors" for i in range(1, 5)), "net.safetensors.index.json"]
    index = json.loads((tmp_path / "net.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 6 * 200 + 400
    arrays = {}
    for name in names[:-1]:
        arrays.update(load_file(tmp_path / name))
        assert sum(array.nbytes for array in load_file(tmp_path / name).values()) <= 500
    assert {
        name: name in load_file(tmp_path / file) for name, file in index["weight_map"].items()
    } == dict.fromkeys(arrays, True)
    for what in (path, tmp_path / "net.safetensors.index.json"):
        found = load(what, mmap=mmap)
        assert found["epoch"] == 3
        assert [float(found["model"][str(i)].sum()) for i in range(6)] == [50.0 * i for i in range(6)]
        assert found["again"] is found["tied"][0]


def test_shards_are_replaced_and_removed(large, tmp_path):
    path = tmp_path / "net.safetensors"
    save(large, path, max_shard_size="0.5KB")
    first = set(os.listdir(tmp_path))
    large["epoch"] = 4
    save(large, path, max_shard_size="500")
    second = set(os.listdir(tmp_path))
    assert len(second) == 5
    assert first & second == {"net.safetensors.index.json"}
    assert load(path)["epoch"] == 4
    save(large, path, max_shard_size="1 GiB")
    assert os.listdir(tmp_path) == ["net.safetensors"]
    assert load(path)["epoch"] == 4
    save(large, path, max_shard_size=500)
    save({"a": 1}, path)
    assert os.listdir(tmp_path) == ["net.safetensors"]
    assert load(path) == {"a": 1}


def test_a_failed_save_leaves_the_old_shards(large, tmp_path, monkeypatch):
    path = tmp_path / "net.safetensors"
    save(large, path, max_shard_size=500)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    written = shards.replace_file

    def fails(name, write):
        if name.endswith(("00003-of-00004.safetensors", "index.json")):
            raise OSError(errno.ENOSPC, "No space left on device")
        written(name, write)

    monkeypatch.setattr(shards, "replace_file", fails)
    with pytest.raises(OSError, match="No space"):
        save(large, path, max_shard_size=500)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


def test_only_shards_of_this_index_are_removed(large, tmp_path):
    """An index may contain any names. Files of other programs are not removed, nor is the target file itself."""
    path = tmp_path / "net.safetensors"
    others = ["notes.txt", "net-00001-of-00002.safetensors", "net-0123abcd-00001-of-00002.safetensors"]
    for name in others:
        (tmp_path / name).write_text("kept")
    (tmp_path / "net-00002-of-00002.safetensors").mkdir()
    os.mkfifo(tmp_path / "net-00003-of-00003.safetensors")
    kept = {*others, "net-00002-of-00002.safetensors", "net-00003-of-00003.safetensors"}
    index = tmp_path / "net.safetensors.index.json"
    for metadata in ({}, {"rushlight": "x", "rushlight.crc32": "0"}):
        text = json.dumps({"metadata": metadata, "weight_map": dict(enumerate([*others, "net.safetensors"]))})
        index.write_text(text)
        save(large, path)
        assert load(path)["epoch"] == 3
        assert set(os.listdir(tmp_path)) - {index.name} == {*kept, "net.safetensors"}
        index.write_text(text)
        save(large, path, max_shard_size=500)
        assert load(path)["epoch"] == 3
        assert kept < set(os.listdir(tmp_path))
        save(large, path)
        assert set(os.listdir(tmp_path)) == {*kept, "net.safetensors"}


def test_the_index_of_another_program_is_left(large, tmp_path):
    save_file({"a": np.ones(2, "f4")}, tmp_path / "net-00001-of-00001.safetensors")
    index = tmp_path / "net.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "net-00001-of-00001.safetensors"}}))
    save(large, tmp_path / "net.safetensors")
    assert load(index)["a"].tolist() == [1, 1]


def test_shards_that_another_index_names_are_left(large, tmp_path):
    path = tmp_path / "net.safetensors"
    save(large, path, max_shard_size=500)
    os.rename(tmp_path / "net.safetensors.index.json", tmp_path / "kept.index.json")
    save(large, path, max_shard_size=500)
    save({"a": 1}, path)
    assert load(tmp_path / "kept.index.json")["epoch"] == 3
    assert len(os.listdir(tmp_path)) == 6


KILLED = """
import os, signal, sys
import rushlight_core as core
from rushlight_nn.serialization import save, shards, replacing
written, last = shards.replace_file, sys.argv[2]
def dies(path, write):
    if last in path:
        os.link = lambda *a, **k: (link(*a, **k), os.kill(os.getpid(), signal.SIGKILL))
    written(path, write)
link = os.link
shards.replace_file = dies
save([core.zeros(100) for _ in range(6)], sys.argv[1], max_shard_size=500)
"""


@pytest.mark.parametrize("again", [{"max_shard_size": 500}, {}])
@pytest.mark.parametrize("last", ["index.json", "00006-of"])
def test_shards_of_a_killed_save_are_removed(last, again, large, tmp_path):
    path = tmp_path / "net.safetensors"
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(path), last], check=False)
        assert killed.returncode == -signal.SIGKILL
    left = os.listdir(tmp_path)
    assert len(left) > 5
    assert any(name.endswith(".tmp") for name in left)
    save(large, path, **again)
    assert load(path)["epoch"] == 3
    assert len(os.listdir(tmp_path)) == (5 if again else 1)


def test_shards_of_a_save_that_goes_on_are_left(large, tmp_path):
    path = tmp_path / "net.safetensors"
    with shards._locked(str(tmp_path)):
        layout = shards.checkpoint.Layout([core.zeros(100), core.ones(100)])
        shards._write_shards(str(path), layout, shards._split(layout.tensors, 400))
        going_on = set(os.listdir(tmp_path)) - {"net.safetensors.index.json"}
        os.unlink(tmp_path / "net.safetensors.index.json")
        save(large, path, max_shard_size=500)
        save(large, path, max_shard_size=500)
        assert len(os.listdir(tmp_path)) == 7
        assert going_on < set(os.listdir(tmp_path))
    save(large, path, max_shard_size=500)
    assert len(os.listdir(tmp_path)) == 5


def test_a_shard_that_is_no_file_is_refused(large, tmp_path):
    path = tmp_path / "net.safetensors"
    save(large, path, max_shard_size=500)
    shard = tmp_path / "net-00002-of-00004.safetensors"
    shard.unlink()
    os.mkfifo(shard)
    with pytest.raises(CheckpointError, match="the path is a pipe or a device"):
        load(path)
    with pytest.raises(CheckpointError, match=r"net-00002.*the path is a pipe or a device"):
        load(shard)
    shard.unlink()
    shard.mkdir()
    with pytest.raises(CheckpointError, match=r"'net-00002-of-00004\.safetensors': the path is a directory"):
        load(path)
    with pytest.raises(IsADirectoryError):
        save(large, tmp_path, max_shard_size=500)


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_shards_of_others(suffix, tmp_path):
    import numpy as np

    parts = [{"a": core.ones(3), "b": core.zeros(2)}, {"c": core.full((4,), 2.0)}]
    names = {}
    for i, part in enumerate(parts):
        name = f"model-{i + 1:05}-of-00002.{suffix}"
        if suffix == "bin":
            save(part, tmp_path / name)
        else:
            save_file({key: value.numpy().astype(np.float32) for key, value in part.items()}, tmp_path / name)
        names |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": 36}, "weight_map": names}
    path = tmp_path / f"model.{suffix}.index.json"
    path.write_text(json.dumps(index))
    found = load(path)
    assert {key: value.tolist() for key, value in found.items()} == {
        "a": [1.0] * 3,
        "b": [0.0] * 2,
        "c": [2.0] * 4,
    }
    for bad in ("../" + names["a"], "/etc/passwd", "", "..", "no-such", 3, "a\0b", "model.index.json/x"):
        path.write_text(json.dumps({"weight_map": {**names, "a": bad}}))
        with pytest.raises(CheckpointError):
            load(path)
    path.write_text(json.dumps({"weight_map": {**names, "z": names["a"]}}))
    with pytest.raises(CheckpointError, match="'z' is not in the shard"):
        load(path)
    for text in (
        "{}",
        '{"weight_map": 3}',
        '{"weight_map": {"a": "b"}, "weight_map": {}}',
        '{"weight_map',
        "{" * 1000,
    ):
        path.write_text(text.ljust(9))
        with pytest.raises(CheckpointError):
            load(path)
    with pytest.raises(CheckpointError, match="pass its path"):
        load(io.BytesIO(json.dumps(index).encode()))


def test_an_altered_shard_is_noticed(large, tmp_path):
    save(large, tmp_path / "x.safetensors", max_shard_size=500)
    shard = tmp_path / "x-00002-of-00004.safetensors"
    data = shard.read_bytes()
    shard.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CheckpointError, match="in its shard 'x-00002-of-00004"):
        load(tmp_path / "x.safetensors")
    shard.unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        load(tmp_path / "x.safetensors")


@pytest.mark.parametrize("size", ["5 apples", 0, -1, "GB", 1.5, None.__class__])
def test_sizes_that_are_none(size, tmp_path):
    with pytest.raises(ValueError, match="max_shard_size"):
        save({}, tmp_path / "x", max_shard_size=size)


def test_shards_need_a_path_and_safetensors(tmp_path):
    for f in (io.BytesIO(), tmp_path / "x.pt"):
        with pytest.raises(ValueError, match="max_shard_size"):
            save({}, f, max_shard_size=5)
    assert [shards.size_in_bytes(s) for s in (7, "5KB", "1.5 MiB", "2gb")] == [7, 5000, 3 << 19, 2 * 10**9]


# Failures of writing ----------------------------------------------------------------------------------------


def test_a_full_disk_leaves_the_old_file(tmp_path):
    for name in NAMES:
        path = tmp_path / name
        save({"a": core.ones(2)}, path)
        before = path.read_bytes()
        code = f"""
import resource, signal, rushlight_core as core
from rushlight_nn.serialization import save
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save({{"a": core.ones(1_000_000)}}, {str(path)!r})
except OSError as error:
    print(error.errno)
"""
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert int(done.stdout) == errno.EFBIG
        assert path.read_bytes() == before
        assert load(path)["a"].tolist() == [1.0, 1.0]
    assert sorted(os.listdir(tmp_path)) == sorted(NAMES)


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_killed_save_leaves_no_temporary_file(unnamed, tmp_path):
    path = tmp_path / "x.pt"
    save({"a": core.ones(2)}, path)
    code = f"""
import os, sys, time
from rushlight_nn.serialization import replacing
if not {unnamed}:
    del os.O_TMPFILE
    os.O_TMPFILE = os.O_DIRECTORY  # cannot be written, like a file system without unnamed files
def write(file):
    file.write(b"x" * 100_000)
    file.flush()
    print("writing", flush=True)
    time.sleep(100)
replacing.replace_file({str(path)!r}, write)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    assert load(path)["a"].tolist() == [1.0, 1.0]
    save({"a": core.zeros(2)}, path)  # the file of the other writer is not removed
    assert len(os.listdir(tmp_path)) == (1 if unnamed else 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert load(path)["a"].tolist() == [0.0, 0.0]
    save({"a": core.ones(1)}, path)
    assert os.listdir(tmp_path) == ["x.pt"]


def test_files_of_others_are_not_removed(tmp_path):
    kept = [".x.pt.tmp", ".x.pt.12345678901z.tmp", ".y.pt.0123456789ab.tmp", "x.pt.0123456789ab.tmp"]
    for name in kept:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".x.pt.0123456789ab.tmp").write_bytes(b"")
    replace_file(str(tmp_path / "x.pt"), lambda file: file.write(b"1"))
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "x.pt"])


def test_saves_at_the_same_time(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / "x.pt"
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(save, {"a": core.full((1000,), float(i))}, path) for i in range(40)]
        deadline = time.monotonic() + 60
        while not all(one.done() for one in done) and time.monotonic() < deadline:
            if path.exists():
                found = load(path)["a"]
                assert float(found.min()) == float(found.max())
        for one in done:
            one.result()
    assert os.listdir(tmp_path) == ["x.pt"]
