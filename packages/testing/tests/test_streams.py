"""Streams, events, pinned memory and late errors on the toy device, whose work runs only when a caller waits for it."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core import Event, Stream, Tensor, devices
from rushlight_core._streams import current_stream
from rushlight_core.seams.allocator import set_allocator

pytestmark = pytest.mark.swap


@pytest.fixture(autouse=True)
def _attached(toy_device: Path) -> None:
    assert devices.load_backend(toy_device) == "toy"


# --- streams and events ---


def test_a_stream_is_the_current_one_within_its_block() -> None:
    first, second = Stream("toy:0"), Stream("toy:1", priority=-1)
    assert first != second
    assert current_stream("toy:0").stream_id == 0
    with first:
        assert current_stream("toy:0") == first
        with second:
            assert devices.current_device("toy") == core.device("toy:1")
            assert current_stream() == second
        assert current_stream() == first
    assert current_stream("toy:0").stream_id == 0
    assert devices.current_device("toy") == core.device("toy:0")


def test_threads_enter_the_same_stream() -> None:
    shared, other = Stream("toy"), Stream("toy")
    inside, may_end = threading.Event(), threading.Event()
    found: list[Stream] = []

    def work() -> None:
        with other:
            with shared:
                inside.set()
                may_end.wait(60)
            found.append(current_stream("toy"))

    thread = threading.Thread(target=work)
    with shared:
        thread.start()
        assert inside.wait(60)
    assert current_stream("toy").stream_id == 0
    may_end.set()
    thread.join()
    assert found == [other]


def test_bad_arguments_of_streams() -> None:
    stream = Stream("toy")
    for call in (
        lambda: stream.wait_stream(None),
        lambda: stream.wait_event(3),
        lambda: stream.record_event(3),
        lambda: Event("toy", enable_timing=True).elapsed_time(None),
        lambda: pickle.dumps(stream),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(RuntimeError, match="not in a `with` block"):
        stream.__exit__(None, None, None)


def test_work_of_streams_is_late_until_it_is_ordered() -> None:
    side = Stream("toy")
    x = core.ones(4, device="toy")
    side.wait_stream(current_stream("toy"))
    with side:
        y = x + 1
        assert not side.query()
        done = side.record_event()
    assert not done.query()
    done.wait()
    assert (y * 2).cpu().tolist() == [4.0] * 4
    assert done.query()
    side.synchronize()
    assert side.query()


def test_events_order_streams_of_two_devices() -> None:
    x = core.ones(3, device="toy:0") + 2
    event = Event("toy:0")
    event.record()
    event.wait(current_stream("toy:1"))
    y = core.zeros(3, device="toy:1") + 1
    assert y.cpu().tolist() == [1.0] * 3
    assert event.query()
    assert x.cpu().tolist() == [3.0] * 3


def test_an_event_belongs_to_the_device_on_which_it_is_first_recorded() -> None:
    events = [Event("toy") for _ in range(3)]
    assert events[0].device == core.device("toy")
    assert events[0].query()
    events[0].synchronize()
    events[0].wait()
    first = core.ones(4, device="toy:0") + 1
    devices.set_device("toy:1")
    try:
        y = core.ones(4, device="toy") + 1
        events[0].record()
        assert events[0].device == y.device == core.device("toy:1")
        assert not events[0].query()
        Stream("toy:1").record_event(events[1])
        assert events[1].device == core.device("toy:1")
        current_stream("toy:0").record_event(events[2])
        assert not events[2].query()
        events[2].wait()  # makes the current stream, which is of toy:1, wait for toy:0
        current_stream().synchronize()
        assert events[2].query()
    finally:
        devices.set_device("toy:0")
    assert events[0].query()
    assert (first.tolist(), y.tolist()) == ([2.0] * 4, [2.0] * 4)


def test_time_passes_between_events() -> None:
    start, end = (Event("toy", enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    x = core.ones(1000, device="toy").exp()
    end.record()
    with pytest.raises(RuntimeError, match="has not completed"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    del x
    plain = Event("toy")
    plain.record()
    with pytest.raises(ValueError, match="enable_timing"):
        plain.elapsed_time(end)


def test_a_stream_of_another_device_is_refused() -> None:
    first, second = Stream("toy:0"), Stream("toy:1")
    event = first.record_event()
    with pytest.raises(ValueError, match="needs a stream of toy:0, got one of toy:1"):
        event.record(second)
    with pytest.raises(ValueError, match="needs a stream of toy:0, got one of toy:1"):
        second.record_event(event)
    with pytest.raises(ValueError, match="needs a stream of toy:0, got one of toy:1"):
        core.ones(1, device="toy:0").record_stream(second)
    with pytest.raises(ValueError, match="needs a stream of toy:1, got one of toy:0"):
        core._C._set_stream("toy:1", first.stream_id)
    with pytest.raises(TypeError, match="must be a Stream"):
        core.ones(1, device="toy").record_stream(3)  # type: ignore[arg-type]
    assert core.ones(1, device="toy").item() == 1


def test_on_the_cpu_there_is_one_stream() -> None:
    stream, event = Stream("cpu"), Event("cpu")
    with stream:
        event.record()
        assert stream.query()
    assert event.query()
    event.synchronize()
    core.ones(1).record_stream(stream)


# --- memory that several streams use ---


@pytest.mark.parametrize("device", ["toy:0", "toy:1"])
def test_memory_is_not_reused_before_other_streams_are_done(device: str) -> None:
    """The tensor is freed while another stream still reads it. New tensors of its own stream must not reuse its memory."""
    side = Stream(device)
    for call in (
        lambda x: x + 1,  # pointwise
        lambda x: x.sum(0, keepdim=True) + 0 * x[0],  # a reduction
        lambda x: x.cumsum(0)[:1],  # a kernel
        lambda x: x.clone(),  # a copy of bytes
        lambda x: x[::2].clone(),  # a strided copy
        lambda x: x.to(core.float64),  # a copy with a conversion
    ):
        x = core.full((5000,), 3.0, device=device)
        wanted = call(x).cpu().tolist()
        side.wait_stream(current_stream(device))
        with side:
            y = call(x)
        del x
        junk = [core.full((5000,), float(i), device=device) for i in range(4)]
        current_stream(device).synchronize()
        assert _read(side, y) == wanted
        del junk


def _read(stream: Stream, t: Tensor) -> list[float]:
    with stream:
        return t.cpu().tolist()


def test_record_stream_is_for_what_core_does_not_see() -> None:
    side = Stream("toy:1")
    devices.empty_cache("toy:1")
    x = core.ones(1 << 20, device="toy:1")
    address = x.data_ptr()
    with side:
        busy = core.ones(4, device="toy:1") + 1
    x.record_stream(side)
    del x
    assert core.empty(1 << 20, device="toy:1").data_ptr() != address
    side.synchronize()
    assert core.empty(1 << 20, device="toy:1").data_ptr() == address
    del busy


# --- copies and pinned memory ---


def test_pinned_memory() -> None:
    x = core.arange(6).view(2, 3)
    assert not x.is_pinned()
    pinned = x.t().pin_memory()
    assert pinned.is_pinned()
    assert pinned.pin_memory() is pinned
    assert pinned.tolist() == x.t().tolist()
    assert pinned.numpy().tolist() == x.t().tolist()
    assert pinned[1:].is_pinned()
    assert not pinned.clone().is_pinned()
    with pytest.raises(RuntimeError, match="needs a tensor on the CPU"):
        core.ones(1, device="toy").pin_memory()


def test_new_tensors_in_pinned_memory() -> None:
    for made, wanted in (
        (core.zeros(2, 3, pin_memory=True), [[0.0] * 3] * 2),
        (core.ones_like(core.zeros(2), pin_memory=True), [1.0, 1.0]),
        (core.full((2,), 3, pin_memory=True), [3, 3]),
        (core.tensor([1.5], pin_memory=True), [1.5]),
        (core.ones(1).new_tensor([2.5], pin_memory=True), [2.5]),
        (core.arange(3, pin_memory=True), [0, 1, 2]),
    ):
        assert made.is_pinned()
        assert made.tolist() == wanted
    assert core.ones(2, requires_grad=True, pin_memory=True).requires_grad
    assert core.empty(0, pin_memory=True).shape == (0,)
    with pytest.raises(RuntimeError, match="needs a tensor on the CPU, got one on toy:0"):
        core.zeros(2, device="toy", pin_memory=True)


def test_pinned_memory_does_not_grow() -> None:
    pinned = core.ones(3).pin_memory()
    assert pinned.resize_(2).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError) as caught:
        pinned.resize_(10)
    assert str(caught.value) == (
        "resize_(input): 40 bytes are needed, but the tensor's memory of 12 bytes is not resizable, because it is pinned\n"
        "hint: clone() the tensor first"
    )
    with pytest.raises(RuntimeError, match=r"^add\(out\): 40 bytes .* not resizable"):
        core.add(core.ones(10), 1, out=core.empty(0, dtype=core.float32).pin_memory().resize_(0))
    with pytest.raises(RuntimeError, match=r"^UntypedStorage.resize_: 40 bytes .* not resizable"):
        pinned.untyped_storage().resize_(40)
    assert pinned.tolist() == [1.0, 1.0]


def test_copies_from_pinned_memory_do_not_wait() -> None:
    source = core.full((1000,), 2.0).pin_memory()
    there = source.to("toy", non_blocking=True)
    event = current_stream("toy").record_event()
    assert not event.query()  # the copy did not wait for the stream
    assert there.cpu().tolist() == [2.0] * 1000
    target = core.zeros(1000).pin_memory()
    target.copy_(there + 1, non_blocking=True)
    assert target.tolist() == [0.0] * 1000
    devices.synchronize("toy")
    assert target.tolist() == [3.0] * 1000


def test_copies_of_other_memory_are_done_with_it() -> None:
    source = core.full((10,), 2.0)
    there = source.to("toy", non_blocking=True)
    source.zero_()
    target = core.zeros(10)
    assert target.copy_(there, non_blocking=True).tolist() == [2.0] * 10


def test_pinned_memory_lives_until_its_copy_is_done() -> None:
    source = core.full((5000,), 2.0).pin_memory()
    there = source.to("toy", non_blocking=True)
    del source
    others = [core.full((5000,), 9.0).pin_memory() for _ in range(3)]
    assert there.cpu().tolist() == [2.0] * 5000
    del others


def test_writing_pinned_memory_during_its_copy_is_an_error() -> None:
    source = core.full((10,), 2.0).pin_memory()
    there = source.to("toy", non_blocking=True)
    other = core.zeros(10)
    for write in (
        lambda: source.add_(1),
        lambda: source[2:].zero_(),
        lambda: core.add(other, 1, out=source),
        lambda: source.copy_(other),
    ):
        with pytest.raises(RuntimeError, match="a copy between this pinned memory and a device is under way"):
            write()
    devices.synchronize("toy")
    assert source.add_(1).tolist() == [3.0] * 10
    assert there.cpu().tolist() == [2.0] * 10


def test_peer_copies_follow_the_streams_of_both_devices() -> None:
    first, second = Stream("toy:0"), Stream("toy:1")
    with first, second:
        x = core.ones(100, device="toy:0") * 3
        y = x.to("toy:1")
        x.zero_()
        assert (y + 1).cpu().tolist() == [4.0] * 100
        z = core.zeros(100, device="toy:0")
        z.copy_(y[::1] * 2)
        assert z.cpu().tolist() == [6.0] * 100


# --- memory that core's allocator keeps for a device ---


def test_core_s_allocator_serves_a_device() -> None:
    gc.collect()
    before = devices.memory_stats("toy:1")
    x = core.ones(1 << 18, device="toy:1")
    held = devices.memory_stats("toy:1")
    assert held["allocated_bytes"] - before["allocated_bytes"] == 1 << 20
    address = x.data_ptr()
    del x
    assert core.empty(1 << 18, device="toy:1").data_ptr() == address  # reused at once by its stream
    blocks = [b for s in json.loads(devices.memory_snapshot("toy:1")) for b in s["blocks"]]
    assert any(b["state"] == "free" for b in blocks)
    devices.empty_cache("toy:1")
    assert devices.memory_stats("toy:1")["reserved_bytes"] <= held["reserved_bytes"]
    devices.reset_peak_memory_stats("toy:1")
    with pytest.raises(NotImplementedError, match="uses its own allocator"):
        devices.memory_stats("toy:0")


def test_out_of_memory_names_the_largest_tensors_and_their_lines() -> None:
    held = [core.empty(12 << 18, device="toy:1")]
    with pytest.raises(MemoryError) as caught:
        while True:
            held.append(core.empty(5 << 18, device="toy:1"))
    text = str(caught.value)
    assert "toy:1: out of memory: a block of 5.0 MiB does not fit" in text
    assert "the largest blocks are 12.0 MiB" in text
    assert "test_streams.py:" in text
    held.clear()
    former = devices.set_memory_limit("toy:1", 1 << 20)
    try:
        devices.empty_cache("toy:1")
        with pytest.raises(MemoryError, match=r"the limit is 1\.0 MiB"):
            core.empty(5 << 18, device="toy:1")
    finally:
        devices.set_memory_limit("toy:1", former)
    assert core.ones(1 << 18, device="toy:1").sum().item() == 1 << 18


# --- bad input ---


def test_a_late_error_names_its_operator_and_line() -> None:
    x = core.arange(10, dtype=core.float32, device="toy")
    y = x.index_select(0, core.tensor([1, 99], device="toy"))
    z = x + 1
    with pytest.raises(IndexError) as caught:
        devices.synchronize("toy")
    text = str(caught.value)
    assert "index_select at " in text
    assert "test_streams.py:" in text
    assert "out of range" in text
    assert z.cpu().tolist() == [float(i + 1) for i in range(10)]  # the process continues
    del y


def test_all_late_errors_are_reported_in_their_order() -> None:
    x = core.arange(10, dtype=core.float32, device="toy")
    index = core.tensor([1, 99], device="toy")
    taken = x.index_select(0, index)
    gathered = x.gather(0, core.tensor([-77], device="toy"))
    drawn = core.poisson(core.tensor([-5.0], device="toy"))
    with pytest.raises(IndexError) as caught:  # the class of the first error
        devices.synchronize("toy")
    lines = str(caught.value).split("queued by ")[1:]
    assert [line.split(" at ")[0] for line in lines] == ["index_select", "gather", "poisson"]
    assert all("test_streams.py:" in line for line in lines)
    assert ["99" in lines[0], "-77" in lines[1], "-5" in lines[2]] == [True] * 3
    devices.synchronize("toy")  # each error is reported once
    assert (x + 1).sum().item() == 55
    del taken, gathered, drawn


def test_a_long_row_of_late_errors_is_counted() -> None:
    x = core.arange(10, dtype=core.float32, device="toy")
    index = core.tensor([99], device="toy")
    taken = [x.index_select(0, index) for _ in range(100)]
    with pytest.raises(IndexError) as caught:
        devices.synchronize("toy")
    assert str(caught.value).count("queued by") == 8
    assert str(caught.value).endswith("and 92 further errors")
    del taken


def test_late_errors_belong_to_their_device() -> None:
    taken = [
        core.ones(3, device=device).index_select(0, core.tensor([index], device=device))
        for device, index in (("toy:0", 40), ("toy:1", 41))
    ]
    for device, index in (("toy:1", 41), ("toy:0", 40)):
        with pytest.raises(IndexError, match=f"index {index} ") as caught:
            devices.synchronize(device)
        assert str(caught.value).count("queued by") == 1
    del taken


LATE: dict[str, tuple[Any, str]] = {
    "floor_divide": (lambda t: t([7, 8]) // t([1, 0]), r"other.*divided by zero .*found 0 at index \(1,\)"),
    "remainder": (lambda t: 7 % t([[1], [0]]), r"other.*divided by zero .*found 0 at index \(1, 0\)"),
    "fmod": (lambda t: core.fmod(t([7, 8]), t(0)), r"other.*divided by zero .*found 0 at index \(\)"),
    "div_trunc": (lambda t: t([7]).div_(t([0]), rounding_mode="trunc"), "other.*divided by zero"),
    "normal": (
        lambda t: core.normal(t([0.0, 0.0]), t([1.0, -2.5])),
        r"std.*negative.* -2\.5 at index \(1,\)",
    ),
    "normal of a number": (lambda t: core.normal(1.0, t([float("nan")])), "std.*negative or NaN.* nan at"),
    "binary_cross_entropy": (
        lambda t: core.binary_cross_entropy(t([0.5, 1.5]), t([0.0, 1.0])),
        r"input.*between 0 and 1, found 1\.5 at index \(1,\)\nhint: use binary_cross_entropy_with_logits",
    ),
    "quantile": (lambda t: t([0.5, 1.5]).quantile(t([2.0])), "q.*between 0 and 1, found 2 at"),
    "cov": (lambda t: t([0.5, 1.5]).cov(fweights=t([1, -1])), "fweights.*negative.* -1 at"),
}


@pytest.mark.parametrize("name", LATE)
def test_values_are_checked_on_every_device(name: str) -> None:
    call, text = LATE[name]
    with pytest.raises(RuntimeError, match=text):
        call(lambda values: core.tensor(values))
    left = call(lambda values: core.tensor(values, device="toy"))  # the call itself raises no error
    with pytest.raises(RuntimeError, match=text) as caught:
        devices.synchronize("toy")
    assert re.search(
        rf"queued by {name.split()[0]} at .*test_streams\.py:\d+: {name.split()[0]}\(", str(caught.value)
    )
    devices.synchronize("toy")
    del left


def test_good_values_pass_the_checks() -> None:
    def on(device: str) -> list[Any]:
        def t(values: Any, **options: Any) -> Any:
            return core.tensor(values, device=device, **options)

        core.manual_seed(3)
        results = [
            t([7, -8], dtype=core.int8) // t([2, 127], dtype=core.int8),
            t([[7], [-8]]) % t([2, 3]).expand(2, 2),
            t([7.0]) // t([0.0]),
            core.normal(t([0.0, 0.0]), t([0.0, 2.0])).round(decimals=3),
            core.normal(t([[1.0]], dtype=core.float64), t([1, 0])).round(decimals=3),
            core.quantile(t([0.5, 1.5]), t([0.0, 1.0])),
        ]
        devices.synchronize(device)
        return [result.tolist() for result in results]

    assert on("toy") == on("cpu")


def test_scratch_memory_runs_out_late(guard_allocator: Path) -> None:
    library = ctypes.CDLL(str(guard_allocator))
    library.guard_allocator.restype = ctypes.c_void_p
    library.guard_refuse_after.argtypes = [ctypes.c_int64]
    x = core.arange(12.0, device="toy").reshape(4, 3).t()
    former = set_allocator(library.guard_allocator())
    try:
        y = x.sort(dim=0, descending=True).values  # queued; its kernel allocates host memory when it runs
        library.guard_refuse_after(0)
        with pytest.raises(core.OutOfMemoryError, match=r"sort at .*test_streams\.py"):
            devices.synchronize("toy")
        library.guard_refuse_after(-1)
        assert x.tolist() == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
        assert x.sort(dim=0, descending=True).values.tolist() == [[2, 5, 8, 11], [1, 4, 7, 10], [0, 3, 6, 9]]
    finally:
        library.guard_refuse_after(-1)
        set_allocator(former)
    del y


def test_memory_that_is_not_there() -> None:
    x = core.ones(4, device="toy:0")
    with pytest.raises(MemoryError, match="toy:0: out of memory"):
        core.empty(1 << 40, device="toy:0")
    assert x.sum().item() == 4


def test_a_failure_in_the_middle_of_a_list() -> None:
    gc.collect()
    held = devices.memory_stats("toy:1")["allocated_bytes"]
    xs = [core.full((size,), 2.0, device="toy:1") for size in (4, 4 << 18, 20 << 18, 20 << 18, 4)]
    before = devices.memory_stats("toy:1")["allocated_bytes"]
    with pytest.raises(MemoryError, match="toy:1: out of memory"):
        core._foreach_mul(xs, 3.0)  # only the first two results fit into memory
    assert devices.memory_stats("toy:1")["allocated_bytes"] == before
    with pytest.raises(RuntimeError, match="dtype"):
        core._foreach_mul_([xs[0], core.ones(2, dtype=core.int64, device="toy:1"), xs[4]], 0.5)
    core._foreach_add_([xs[0], xs[4]], 1.0)
    assert xs[4].tolist() == [3.0] * 4
    assert xs[1].sum().item() == 2.0 * (4 << 18)
    index = [core.tensor([i], device="toy:1") for i in (0, 99, 1)]
    taken = [xs[0].index_select(0, i) for i in index]
    with pytest.raises(IndexError, match="99"):
        devices.synchronize("toy:1")
    assert taken[0].item() == 2.0  # 2 * 0.5 + 1: lists are updated one tensor after the other, as in PyTorch
    assert taken[2].item() == taken[0].item()
    del xs, taken, index
    gc.collect()
    assert devices.memory_stats("toy:1")["allocated_bytes"] == held


def test_a_forked_child_cannot_use_the_devices_of_its_parent(toy_device: Path) -> None:
    program = f"""
import os, sys
import rushlight_core as core
core.devices.load_backend({str(toy_device)!r})
x = core.ones(3, device="toy") + 1
pinned = core.ones(3).pin_memory()
event = core.Event("toy")
event.record()
child = os.fork()
if child == 0:
    for call in (lambda: core.ones(1, device="toy"), lambda: x + 1, lambda: x.cpu(), lambda: core.Event("toy"),
                 lambda: core.ones(3).pin_memory(), event.query, event.synchronize, event.wait, event.record):
        try:
            call()
        except RuntimeError as error:
            assert "fork" in str(error) or "no device" in str(error), error
        else:
            os._exit(1)
    assert (core.ones(2) + pinned[:2]).tolist() == [2, 2]
    del x, pinned, event
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert x.cpu().tolist() == [2.0] * 3
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_streams_gives_the_same(seed: int, toy_device: Path) -> None:
    """Streams that are ordered by events give the same results in any order of the other work."""
    program = f"""
import rushlight_core as core
core.devices.load_backend({str(toy_device)!r})
streams = [core.Stream("toy:%d" % (i % 2)) for i in range(6)]
x = core.ones(256, device="toy:0")
parts = []
for i, s in enumerate(streams):
    s.wait_stream(core._streams.current_stream("toy:0"))
    with s:
        y = x.to(s.device) if s.device != x.device else x
        for _ in range(20):
            y = (y + i) * 0.5
        parts.append(y.to("toy:0"))
    core._streams.current_stream("toy:0").wait_stream(s)
want = []
for i in range(6):
    v = 1.0
    for _ in range(20):
        v = (v + i) * 0.5
    want.append(v)
got = [p[0].item() for p in parts]
assert all(abs(a - b) < 1e-5 for a, b in zip(got, want)), (got, want)
"""
    environment = {**os.environ, "RUSHLIGHT_TOY_SEED": str(seed + 1)}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=environment)
