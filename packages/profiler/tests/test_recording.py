"""The events that operators, spans and memory add to a recording."""

from __future__ import annotations

import gc

import pytest

import rushlight_core as core
from rushlight_profiler import EventList, profile, record_function


def names(prof: profile) -> list[str]:
    return [event.name for event in prof.events()]


def recorded_with_warning(match, work, **options):
    prof = profile(**options)
    prof.start()
    work()
    with pytest.warns(RuntimeWarning, match=match):
        prof.stop()
    return prof


def test_operators_in_order(x):
    with profile() as prof:
        y = x + x
        y.select(0, 1)
        y.add_(1)
    assert names(prof) == ["add", "select", "add_"]
    assert all(event.kind == "operator" for event in prof.events())


def test_results_are_what_they_are_without_a_profiler(x):
    expected = (x + x).tolist()
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        assert (x + x).tolist() == expected
        y = x.clone()
        assert y.add_(x) is y
        assert y.tolist() == expected
        assert core.add(x, x, out=y) is y


def test_nothing_is_recorded_before_and_after(x):
    x + x
    with profile() as prof:
        pass
    x + x
    with record_function("later"):
        pass
    assert prof.events() == []
    assert prof.key_averages().table() == "No events were recorded."


def test_an_overload_is_kept_apart_from_the_name(x):
    out = x.clone()
    with profile() as prof:
        core.add(x, x, out=out)
        x + x
    assert [(event.name, event.overload_name) for event in prof.events()] == [("add", "out"), ("add", "")]
    assert len(prof.key_averages()) == 1
    assert len(prof.key_averages(group_by_overload_name=True)) == 2


def test_spans_nest(x):
    with profile() as prof:
        with record_function("outer"):
            x + x
            with record_function("inner"):
                x.clone()
        x.add_(1)
    outer, add, inner, clone, add_ = prof.events()
    assert [event.name for event in (outer, add, inner, clone, add_)] == [
        "outer",
        "add",
        "inner",
        "clone",
        "add_",
    ]
    assert outer.cpu_children == [add, inner]
    assert add.cpu_parent is outer
    assert clone.cpu_parent is inner
    assert outer.cpu_parent is None
    assert add_.cpu_parent is None
    for event in (add, inner):
        assert (
            outer.time_range.start <= event.time_range.start <= event.time_range.end <= outer.time_range.end
        )
    total = add.cpu_time_total + inner.cpu_time_total
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - total)


def test_shapes_and_dtypes(x):
    with profile(record_shapes=True) as prof:
        x + core.tensor([1, 2, 3])
        x.add(2, alpha=3)
        x.select(0, 0)
    mixed, scalar, select = prof.events()
    assert mixed.input_shapes == [[2, 3], [3], []]
    assert mixed.input_dtypes == ["float32", "int64", ""]
    assert scalar.input_shapes == [[2, 3], [], []]
    assert select.input_shapes[0] == [2, 3]
    assert select.nbytes == 12


def test_shapes_are_recorded_only_if_wanted(x):
    with profile() as prof:
        x + x
    assert prof.events()[0].input_shapes == []


def test_a_zero_dimensional_tensor_is_told_from_a_number():
    with profile(record_shapes=True) as prof:
        core.tensor(1.0) + core.tensor([1.0])
    event = prof.events()[0]
    assert event.input_dtypes == ["float32", "float32", ""]
    assert event.input_shapes == [[], [1], []]


def test_stacks_name_the_line(x):
    def caller():
        return x + x

    with profile(with_stack=True) as prof:
        caller()
    event = prof.events()[0]
    line = caller.__code__.co_firstlineno + 1
    assert event.stack[0] == f"{__file__}({line}): {caller.__qualname__}"
    assert "test_stacks_name_the_line" in event.stack[1]
    assert len(event.stack) <= 64
    by_line = prof.key_averages(group_by_stack_n=1)
    assert by_line[0].stack == [event.stack[0]]


def test_memory(x):
    nbytes = 1 << 20
    big = core.tensor([0.0] * (nbytes // 4))
    with profile(profile_memory=True) as prof:
        with record_function("grows"):
            y = big + big
        with record_function("shrinks"):
            del y
        with record_function("neither"):
            z = big.clone()
            del z
    rows = {event.name: event for event in prof.events()}
    assert rows["add"].self_cpu_memory_usage == nbytes
    assert rows["grows"].cpu_memory_usage == nbytes
    assert rows["grows"].self_cpu_memory_usage == 0
    assert rows["shrinks"].cpu_memory_usage == -nbytes
    assert rows["neither"].cpu_memory_usage == 0
    assert rows["clone"].cpu_memory_usage == nbytes
    changes = [
        event.nbytes for event in prof.recording.raw if event.kind == "memory" and abs(event.nbytes) >= nbytes
    ]
    assert changes == [nbytes, -nbytes, nbytes, -nbytes]
    points = prof.memory_timeline()
    base = prof.recording.header.allocated
    assert base >= nbytes  # includes the memory of `big`
    assert max(point.nbytes for point in points) == base + nbytes
    assert [point.time for point in points] == sorted(point.time for point in points)
    assert prof.memory_timeline("cuda:0") == []


def test_memory_is_recorded_only_if_wanted(x):
    with profile() as prof:
        x + x
    assert prof.memory_timeline() == []


def test_an_operator_that_raises_is_recorded_and_ends(x):
    with profile() as prof:
        with pytest.raises(RuntimeError):
            x + core.tensor([1.0, 2.0])
        with record_function("after"):
            pass
    failed, after = prof.events()
    assert failed.name == "add"
    assert after.cpu_parent is None


def test_an_exception_stops_the_profile(x):
    prof = profile()
    with pytest.raises(KeyError), prof:
        x + x
        raise KeyError
    assert names(prof) == ["add"]


def test_a_full_buffer_keeps_the_first_and_counts_the_rest(x):
    prof = recorded_with_warning(
        "34 events are missing", lambda: [x + x for _ in range(50)], buffer_events=16
    )
    assert len(prof.events()) == 16
    assert prof.recording.header.dropped == 34
    assert "34 events are missing" in prof.key_averages().table()
    starts = [event.time_range.start for event in prof.events()]
    assert starts == sorted(starts)


def test_buffers_are_used_again(x):
    for _ in range(5):
        with profile(buffer_events=16, record_shapes=True) as prof:
            for _ in range(10):
                x + x
        assert len(prof.events()) == 10
        assert all(event.input_shapes == [[2, 3], [2, 3], []] for event in prof.events())


def test_arguments_without_room_are_counted():
    big = core.tensor([1.0]).view([1] * 60)  # 124 words in a buffer of 256
    prof = recorded_with_warning(
        "arguments of 8 operators are missing",
        lambda: [big + big for _ in range(10)],
        record_shapes=True,
        buffer_events=16,
    )
    events = prof.events()
    assert len(events) == 10
    assert [event.input_shapes[:1] for event in events[1:3]] == [[[1] * 60], []]


def test_another_size_of_buffer(x):
    with profile(buffer_events=16):
        x + x
    with profile(buffer_events=64) as prof:
        for _ in range(60):
            x + x
    assert len(prof.events()) == 60


def test_deep_nesting_ends_in_a_count_not_a_crash():
    spans = [record_function(str(i)) for i in range(5000)]

    def nest():
        for span in spans:
            span.__enter__()
        for span in reversed(spans):
            span.__exit__(None, None, None)

    prof = recorded_with_warning("events are missing", nest)
    assert len(prof.events()) + prof.recording.header.dropped == 5000
    assert prof.events()[1].cpu_parent is prof.events()[0]


def test_tensors_are_not_kept_alive():
    before = core.tensor([0.0] * 1000)
    with profile(record_shapes=True, profile_memory=True) as prof:
        y = before + before
        del y
    gc.collect()
    assert prof.events()[0].cpu_memory_usage == 4000
    assert prof.memory_timeline()[-1].nbytes == prof.recording.header.allocated


def test_times_are_those_of_the_clock(x):
    import time

    with profile() as prof:
        began = time.monotonic_ns()
        with record_function("sleep"):
            time.sleep(0.02)
        took = (time.monotonic_ns() - began) / 1e3
    recorded = prof.events()[0].cpu_time_total
    assert 20_000 * 0.999 <= recorded <= took * 1.001
    assert prof.recording.header.duration / 1e3 >= recorded * 0.999


def test_slices_of_events_are_event_lists(x):
    with profile() as prof:
        for _ in range(5):
            x + x
    part = prof.events()[1:3]
    assert isinstance(part, EventList)
    assert part.key_averages()[0].count == 2


def test_an_empty_list_of_tensors_and_an_absent_tensor():
    operators = {name for name in ("cat", "stack") if hasattr(core, name)}
    for name in operators:
        with profile(record_shapes=True) as prof:
            getattr(core, name)([core.tensor([1.0]), core.tensor([2.0])])
        assert prof.events()[0].input_shapes[0] == [[1], [1]]
