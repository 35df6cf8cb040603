"""`profile` and `schedule`: the steps that are recorded, and errors."""

from __future__ import annotations

import pytest

import rushlight_profiler
from rushlight_profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from rushlight_profiler.session import events_so_far, recorded_data

NONE, WARMUP, RECORD, SAVE = ProfilerAction


def actions(count, **options):
    made = schedule(**options)
    return [made(step) for step in range(count)]


def test_schedule():
    assert actions(6, wait=1, warmup=1, active=2) == [NONE, WARMUP, RECORD, SAVE, NONE, WARMUP]
    assert actions(4, wait=1, warmup=0, active=1, repeat=1) == [NONE, SAVE, NONE, NONE]
    assert actions(5, wait=0, warmup=0, active=2) == [RECORD, SAVE, RECORD, SAVE, RECORD]
    assert actions(5, wait=1, warmup=0, active=1, skip_first=2) == [NONE, NONE, NONE, SAVE, NONE]
    assert actions(5, wait=2, warmup=0, active=1, skip_first=1, skip_first_wait=1) == [
        NONE,
        SAVE,
        NONE,
        NONE,
        SAVE,
    ]


@pytest.mark.parametrize(
    "options", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}]
)
def test_schedules_that_make_no_sense(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        schedule(**{"wait": 1, "warmup": 1, "active": 1, **options})
    with pytest.raises(ValueError, match=r"schedule\(step\): must be 0 or more, got -1"):
        schedule(wait=1, warmup=1, active=1)(-1)


def test_windows_of_a_schedule(x):
    windows = []

    def ready(prof):
        windows.append([event.name for event in prof.events() if event.kind == "annotation"])

    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
        for step in range(9):
            with record_function(f"body {step}"):
                x + x
            prof.step()
    assert windows == [
        ["ProfilerStep#2", "body 2", "ProfilerStep#3", "body 3"],
        ["ProfilerStep#6", "body 6", "ProfilerStep#7", "body 7"],
    ]
    assert prof.step_num == 9


def test_steps_contain_what_happens_in_them(x):
    with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=1)) as prof:
        x + x
        prof.step()
    step, add = prof.events()
    assert step.name == "ProfilerStep#0"
    assert add.cpu_parent is step


def test_a_window_that_the_end_cuts_short_is_ready_too(x):
    calls = []
    with profile(schedule=schedule(wait=0, warmup=1, active=5), on_trace_ready=calls.append) as prof:
        x + x
        prof.step()
        x.clone()
    assert calls == [prof]
    assert [event.name for event in prof.events()] == ["ProfilerStep#1", "clone"]


def test_warm_up_alone_makes_no_window(x):
    calls = []
    with profile(schedule=schedule(wait=0, warmup=2, active=1), on_trace_ready=calls.append) as prof:
        x + x
        prof.step()
    assert calls == []
    with pytest.raises(RuntimeError, match="nothing has been recorded"):
        prof.events()


def test_a_schedule_of_the_users_own(x):
    plan = [RECORD, NONE, SAVE, SAVE]
    windows = []
    with profile(
        schedule=lambda step: plan[step] if step < 4 else NONE,
        on_trace_ready=lambda p: windows.append(p.events()),
    ) as prof:
        for _ in range(4):
            x + x
            prof.step()
    assert [window[0].name for window in windows] == ["ProfilerStep#0", "ProfilerStep#2", "ProfilerStep#3"]


def test_start_and_stop_without_with(x):
    prof = profile()
    prof.stop()
    prof.start()
    x + x
    with pytest.raises(RuntimeError, match="started already"):
        prof.start()
    prof.stop()
    prof.stop()
    assert [event.name for event in prof.events()] == ["add"]
    prof.start()
    x.clone()
    prof.stop()
    assert [event.name for event in prof.events()] == ["clone"]


def test_one_at_a_time(x):
    with profile() as outer:
        with pytest.raises(RuntimeError, match="another profile is recording\nhint"):
            profile().start()
        x + x
    assert [event.name for event in outer.events()] == ["add"]
    with profile() as again:
        x + x
    assert len(again.events()) == 1


def test_events_so_far(x):
    assert events_so_far() == []
    assert recorded_data() is None
    with profile(with_flops=True) as prof:
        x + x
        with record_function("open"):
            x.clone()
            assert [event.name for event in events_so_far()] == ["add", "clone"]
        (add, span, clone) = events_so_far()
        assert clone.cpu_parent is span
        assert add.input_shapes[:2] == [list(x.shape)] * 2
        assert recorded_data() == {"shapes": True, "memory": False, "stacks": False}
        x - x
    assert [event.name for event in prof.events()] == ["add", "open", "clone", "sub"]


def test_results_before_there_are_any():
    prof = profile()
    for read in (
        prof.events,
        prof.key_averages,
        prof.advice,
        prof.memory_timeline,
        lambda: prof.export("/nowhere"),
    ):
        with pytest.raises(RuntimeError, match="nothing has been recorded yet\nhint"):
            read()
    with pytest.raises(RuntimeError, match=r"step\(\): the profiler has not been started"):
        prof.step()


def test_an_error_in_on_trace_ready_reaches_the_caller(x):
    def fail(prof):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), profile(on_trace_ready=fail):
        x + x
    with profile() as prof:
        x + x
    assert len(prof.events()) == 1


def test_activities():
    assert rushlight_profiler.supported_activities() == {ProfilerActivity.CPU}
    assert profile(activities=[ProfilerActivity.CPU]).activities == {ProfilerActivity.CPU}
    with pytest.warns(UserWarning, match="CUDA cannot be recorded here"):
        assert profile(activities=list(ProfilerActivity)).activities == {ProfilerActivity.CPU}
    with pytest.raises(ValueError, match=r"must include ProfilerActivity\.CPU"):
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.raises(ValueError, match=r"must include ProfilerActivity\.CPU"):
        profile(activities=[])
    with pytest.raises(TypeError, match="'cpu'"):
        profile(activities=["cpu"])


def test_arguments_that_are_refused():
    with pytest.raises(TypeError):
        profile([ProfilerActivity.CPU])
    with pytest.raises(NotImplementedError, match="with_modules"):
        profile(with_modules=True)
    for wrong in (0, 15, 1 << 29, "many", None):
        with pytest.raises(ValueError, match="buffer_events"):
            profile(buffer_events=wrong)
    with pytest.raises(TypeError, match="on_trace_ready"):
        profile(on_trace_ready="print")
    with pytest.raises(TypeError, match="schedule"):
        profile(schedule=3)


def test_metadata(x):
    prof = profile(record_shapes=True)
    prof.add_metadata("run", "first")
    prof.add_metadata_json("sizes", "[1, 2]")
    with pytest.raises(ValueError, match="Expecting"):
        prof.add_metadata_json("sizes", "[1,")
    with prof:
        x + x
    metadata = prof.recording.header.metadata
    assert metadata["run"] == "first"
    assert metadata["sizes"] == [1, 2]
    assert metadata["record_shapes"] is True


def test_every_public_name_is_there():
    for name in rushlight_profiler.__all__:
        assert getattr(rushlight_profiler, name).__doc__
    assert set(rushlight_profiler.__all__) <= set(dir(rushlight_profiler))
    assert rushlight_profiler.profile.__module__ == "rushlight_profiler.session"
    with pytest.raises(AttributeError, match="nonsense"):
        rushlight_profiler.nonsense
