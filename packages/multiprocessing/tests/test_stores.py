"""Stores, and how processes form a group through a store or the environment."""

from __future__ import annotations

import os
import pickle
import socket
import struct
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rushlight_multiprocessing import distributed as dist


def made(kind: str, path: Path) -> dist.Store:
    if kind == "tcp":
        return dist.TCPStore("localhost", 0, is_master=True)
    if kind == "file":
        return dist.FileStore(str(path / "store"))
    if kind == "prefix":
        return dist.PrefixStore("a", dist.PrefixStore("b", dist.HashStore()))
    return dist.HashStore()


@pytest.mark.parametrize("kind", ["tcp", "file", "prefix", "hash"])
def test_values_by_key(kind: str, tmp_path: Path) -> None:
    store = made(kind, tmp_path)
    before = store.num_keys()
    store.set("text", "väl")
    store.set("bytes", b"\0\xff")
    assert (store.get("text"), store.get("bytes")) == ("väl".encode(), b"\0\xff")
    assert [store.add("n", 2), store.add("n", -5), store.get("n")] == [2, -3, b"-3"]
    assert store.compare_set("text", "other", "new") == "väl".encode()
    assert store.compare_set("text", "väl", "new") == b"new" == store.get("text")
    assert store.compare_set("fresh", "", "one") == b"one"
    store.append("text", "er")
    assert store.multi_get(["text", "fresh"]) == [b"newer", b"one"]
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.check(["x", "y"])
    assert not store.check(["x", "z"])
    assert store.num_keys() - before == 6
    assert store.delete_key("x")
    assert not store.delete_key("x")
    assert not store.check(["x"])
    store.set_timeout(timedelta(seconds=0.05))
    with pytest.raises(dist.DistStoreError, match=r"'z' not set after 0\.05 seconds"):
        store.get("z")
    threading.Timer(0.05, lambda: store.set("late", "here")).start()
    store.wait(["late"], timedelta(seconds=10))


def test_a_tcp_store_serves_other_clients() -> None:
    server = dist.TCPStore("localhost", 0, is_master=True)
    client = dist.TCPStore("localhost", server.port)
    client.set("key", b"x" * 1_000_000)
    assert len(server.get("key")) == 1_000_000
    assert server.is_master
    assert not client.is_master
    with pytest.raises(dist.DistStoreError, match="ValueError"):
        client.add("key", 1)
    with pytest.raises(dist.DistStoreError, match="cannot listen"):
        dist.TCPStore("localhost", server.port, is_master=True)
    server.close()
    with pytest.raises(dist.DistStoreError, match="lost the connection to the store"):
        client.get("key")
    with pytest.raises(dist.DistStoreError, match="no store at"):
        dist.TCPStore("localhost", server.port, timeout=timedelta(seconds=0.05))


class _Attack:
    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (3,)


@pytest.mark.parametrize("message", [pickle.dumps(_Attack()), b"nonsense", pickle.dumps(("__init__",))])
def test_a_tcp_store_drops_clients_that_send_something_else(message: bytes) -> None:
    server = dist.TCPStore("localhost", 0, is_master=True)
    with socket.create_connection(("localhost", server.port)) as connection:
        connection.sendall(struct.pack("<q", len(message)) + message)
        assert connection.recv(1) == b""
    server.set("key", "still here")
    assert server.get("key") == b"still here"


JOB = """
    import os, sys
    import rushlight_core as core
    from rushlight_multiprocessing import distributed as dist

    method, world = sys.argv[1], 2
    for rank in range(1, world):
        if os.fork() == 0:
            break
    else:
        rank = 0
    if method == "env://":
        os.environ["RANK"] = str(rank)
        dist.init_process_group("gloo")
    else:
        dist.init_process_group(init_method=method, rank=rank, world_size=world)
    tensor = core.tensor([float(rank + 1)])
    dist.all_reduce(tensor)
    dist.barrier()
    assert tensor.item() == 3 and dist.get_rank() == rank and dist.get_world_size() == 2
    dist.destroy_process_group()
    assert not dist.is_initialized()
    if rank:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    print("done")
"""


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("localhost", 0))
        return int(chosen.getsockname()[1])


@pytest.mark.parametrize("method", ["env", "tcp", "file"])
def test_processes_meet(
    method: str, tmp_path: Path, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    if method == "env":
        monkeypatch.setenv("MASTER_ADDR", "localhost")
        monkeypatch.setenv("MASTER_PORT", str(port))
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    url = {"env": "env://", "tcp": f"tcp://localhost:{port}", "file": f"file://{tmp_path}/meet"}[method]
    assert run_script(JOB, url) == "done\n"


def test_environments_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE are not set"):
        dist.init_process_group()
    for name, text in (
        ("RANK", "0"),
        ("WORLD_SIZE", "2"),
        ("MASTER_ADDR", "localhost"),
        ("MASTER_PORT", "1"),
    ):
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with pytest.raises(RuntimeError, match="LOCAL_WORLD_SIZE=1 of WORLD_SIZE=2"):
        dist.init_process_group()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    with pytest.raises(RuntimeError, match="TORCH_DISABLE_SHARE_RDZV_TCP_STORE"):
        dist.init_process_group()
    monkeypatch.setenv("RANK", "two")
    with pytest.raises(ValueError, match="RANK must be a number"):
        dist.init_process_group()


def test_arguments_that_are_refused() -> None:
    store = dist.HashStore()
    for error, match, arguments in (
        (ValueError, "nccl is not available; must be 'shm'", {"backend": "nccl"}),
        (ValueError, "must begin with env://", {"init_method": "http://x"}),
        (ValueError, "mutually exclusive", {"init_method": "env://", "store": store}),
        (ValueError, "from 0 to 1, got 2", {"store": store, "rank": 2, "world_size": 2}),
        (TypeError, "timedelta", {"store": store, "rank": 0, "world_size": 1, "timeout": 3}),
        (ValueError, "must be None", {"device_id": 0}),
    ):
        with pytest.raises(error, match=match):
            dist.init_process_group(**arguments)
    assert not dist.is_initialized()


def test_the_default_timeout_of_sockets_is_not_that_of_stores() -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.01)
    try:
        store = dist.TCPStore("localhost", 0, is_master=True)
        waiting = threading.Timer(0.1, store.set, ("late", "value"))
        waiting.start()
        assert store.get("late") == b"value"
        waiting.join()
        other = dist.TCPStore("localhost", store.port)  # the server still accepts connections
        assert other.get("late") == b"value"
    finally:
        socket.setdefaulttimeout(before)
