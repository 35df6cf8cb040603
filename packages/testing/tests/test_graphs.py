"""Graphs of a device: recording, replaying, the memory that they keep, and errors."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import rushlight_core as core
from rushlight_core import devices
from rushlight_core._graphs import Capture, Graph, new_graph_pool
from rushlight_core._streams import current_stream

pytestmark = pytest.mark.swap

TOY = "toy:1"  # the device whose memory core's allocator manages


@pytest.fixture(autouse=True)
def _attached(toy_device: Path) -> Iterator[None]:
    devices.load_backend(toy_device)
    yield
    devices.synchronize(TOY)
    gc.collect()
    devices.empty_cache(TOY)
    assert devices.memory_stats(TOY)["reserved_bytes"] == 0


def on_toy(*values: float) -> core.Tensor:
    return core.tensor(values).to(TOY)


def test_a_replay_does_the_work_on_what_the_tensors_hold_now() -> None:
    x, w = on_toy(1.0, 2.0), on_toy(3.0, 4.0)
    graph = Graph(TOY)
    with Capture(graph):
        assert devices.is_current_stream_capturing(TOY)
        y = (x * w + 1).relu().cumsum(0)
    assert not devices.is_current_stream_capturing(TOY)
    for value in (1.0, -2.0, 5.0):
        x.fill_(value)
        graph.replay()
        expected = (core.full((2,), value) * core.tensor([3.0, 4.0]) + 1).relu().cumsum(0)
        assert y.tolist() == expected.tolist()


def test_nothing_runs_while_it_is_recorded() -> None:
    x = on_toy(1.0)
    graph = Graph(TOY)
    with Capture(graph):
        x.add_(1)
    assert x.item() == 1.0
    graph.replay()
    graph.replay()
    assert x.item() == 3.0


def test_memory_of_a_graph_is_used_within_it_and_by_nobody_else() -> None:
    x = core.ones(1024, device=TOY)
    graph = Graph(TOY)
    before = devices.memory_stats(TOY)["allocated_bytes_peak"]
    with Capture(graph):
        y = x
        for _ in range(64):
            y = y + 1  # all blocks except two are free again
    assert devices.memory_stats(TOY)["allocated_bytes_peak"] <= before + 3 * 4096
    graph.replay()
    others = [core.full((1024,), -1.0, device=TOY) for _ in range(64)]
    graph.replay()
    assert y.tolist() == [65.0] * 1024
    assert all(other.tolist() == [-1.0] * 1024 for other in others)


def test_memory_that_recorded_work_uses_is_kept() -> None:
    x = on_toy(2.0, 3.0)
    view = x[1:]
    graph = Graph(TOY)
    with Capture(graph):
        y = view * 10
    del x, view
    others = [on_toy(-1.0, -1.0) for _ in range(50)]
    graph.replay()
    assert y.item() == 30.0
    del others


def test_each_replay_draws_other_numbers_the_same_as_without_a_graph() -> None:
    graph = Graph(TOY)
    core.manual_seed(5)
    core.rand(3, device=TOY)  # the graph begins after other random numbers were drawn
    with Capture(graph):
        a = core.rand(4, device=TOY)
        b = core.randn(4, device=TOY)
    drawn = []
    core.manual_seed(7)
    for _ in range(3):
        graph.replay()
        drawn.append((a.tolist(), b.tolist()))
    core.manual_seed(7)
    for first, second in drawn:
        assert core.rand(4, device=TOY).tolist() == first
        assert core.randn(4, device=TOY).tolist() == second


def test_the_first_draws_after_seed_zero() -> None:
    core.manual_seed(0)
    graph = Graph(TOY)
    with Capture(graph):
        a = core.rand(4, device=TOY)
    core.manual_seed(0)
    graph.replay()
    first = a.tolist()
    graph.replay()
    second = a.tolist()
    core.manual_seed(0)
    assert core.rand(4, device=TOY).tolist() == first
    assert core.rand(4, device=TOY).tolist() == second


def test_a_stream_that_waits_for_the_captured_one_is_captured() -> None:
    x = on_toy(1.0, 2.0)
    side = core.Stream(TOY)
    graph = Graph(TOY)
    with Capture(graph):
        main = current_stream(TOY)
        y = x * 2
        side.wait_stream(main)
        with side:
            assert devices.is_current_stream_capturing(TOY)
            z = y + 1
            del y
        main.wait_stream(side)
        z = z * 10
    x.fill_(4.0)
    graph.replay()
    assert z.tolist() == [90.0, 90.0]


def test_graphs_share_a_pool() -> None:
    pool = new_graph_pool()
    x = core.ones(1 << 16, device=TOY)
    first, second = Graph(TOY), Graph(TOY)
    with Capture(first, pool):
        for _ in range(4):
            y = x * 3
        del y
    reserved = devices.memory_stats(TOY)["reserved_bytes"]
    with Capture(second, first.pool()):
        for _ in range(4):
            y = x * 5
    assert devices.memory_stats(TOY)["reserved_bytes"] == reserved
    assert first.pool() == second.pool() == pool
    first.reset()
    second.replay()
    assert y[0].item() == 5.0


def test_copies_between_pinned_memory_and_the_device() -> None:
    source, target = core.ones(4).pin_memory(TOY), core.zeros(4).pin_memory(TOY)
    x = core.empty(4, device=TOY)
    graph = Graph(TOY)
    with Capture(graph):
        x.copy_(source, non_blocking=True)
        x.mul_(2)
        target.copy_(x, non_blocking=True)
    source.fill_(3.0)
    graph.replay()
    devices.synchronize(TOY)
    assert target.tolist() == [6.0] * 4


@pytest.mark.parametrize(
    "what",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: core.nonzero(x),
        lambda x: x[x > 0],
        lambda x: x.copy_(core.ones(2)),
        lambda x: core.tensor([1.0], device=TOY),
        lambda x: devices.synchronize(TOY),
        lambda x: core.Stream(TOY).wait_stream(core.Stream(TOY)) or core.Event(TOY).record() or x.tolist(),
        lambda x: core.Event(TOY).record() or bool(x.all()),
    ],
)
def test_what_waits_is_refused_where_it_is_called(what: object) -> None:
    x = on_toy(1.0, 2.0)
    graph = Graph(TOY)
    with pytest.raises(RuntimeError, match="graph"), Capture(graph):
        what(x)
    assert not devices.is_current_stream_capturing(TOY)
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="nothing has been recorded"):
        graph.replay()
    with Capture(graph):  # the graph can be used again
        y = x + 1
    graph.replay()
    assert y.tolist() == [2.0, 3.0]


def test_events_of_a_capture_are_not_asked() -> None:
    x = on_toy(1.0)
    graph = Graph(TOY)
    event = core.Event(TOY)
    with Capture(graph):
        x.add_(1)
        event.record()
        with pytest.raises(RuntimeError, match="belongs to that graph"):
            event.query()
    with pytest.raises(RuntimeError, match="belongs to that graph"):
        event.synchronize()


def test_calls_out_of_order() -> None:
    graph = Graph(TOY)
    for method in (graph.capture_end, graph.replay, graph.pool):
        with pytest.raises(RuntimeError):
            method()
    with pytest.raises(RuntimeError, match="default stream"):
        graph.capture_begin()
    with Capture(graph):
        with pytest.raises(RuntimeError, match="has already recorded operators"):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match="another graph is recording this stream"):
            Graph(TOY).capture_begin()
        with pytest.raises(RuntimeError, match="this graph is being captured"):
            graph.reset()
        with pytest.raises(RuntimeError, match="replay"):
            graph.replay()
    with pytest.raises(RuntimeError, match="has already recorded operators"), Capture(graph):
        pass
    graph.reset()
    graph.reset()
    with pytest.raises(ValueError, match="no such pool"), Capture(graph, (0, 10**6)):
        pass
    with pytest.raises(TypeError, match="pool"), Capture(graph, 3):
        pass
    with pytest.raises(ValueError, match="capture_error_mode"), Capture(graph, capture_error_mode="none"):
        pass


def test_a_generator_of_ones_own_is_refused() -> None:
    graph = Graph(TOY)
    own = core.Generator()
    own.manual_seed(3)
    with pytest.raises(NotImplementedError, match="default generator"), Capture(graph):
        core.rand(3, device=TOY, generator=own)


def test_devices_without_graphs() -> None:
    with pytest.raises(NotImplementedError, match="uses its own allocator"):
        Graph("toy:0")
    with pytest.raises(NotImplementedError, match="CPU"):
        Graph("cpu")


def test_a_graph_dies_while_it_is_recorded_and_while_it_is_replayed() -> None:
    x = on_toy(1.0)
    graph = Graph(TOY)
    with Capture(graph):
        y = x + 1
    graph.replay()
    del graph, x
    others = [on_toy(7.0) for _ in range(20)]
    assert y.item() == 2.0
    del others
    forgotten = Graph(TOY)
    with core.Stream(TOY):
        forgotten.capture_begin()
        del forgotten
        assert not devices.is_current_stream_capturing(TOY)
        assert y.item() == 2.0


def test_late_errors_of_recorded_work_name_the_line() -> None:
    source, index = on_toy(1.0, 2.0), core.tensor([0, 1]).to(TOY)
    graph = Graph(TOY)
    with Capture(graph):
        y = source.gather(0, index)
    index.fill_(9)
    graph.replay()
    with pytest.raises(RuntimeError, match=f"gather.*{os.path.basename(__file__)}"):
        devices.synchronize(TOY)
    index.fill_(1)
    graph.replay()
    assert y.tolist() == [2.0, 2.0]
