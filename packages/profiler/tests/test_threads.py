"""Recording on several threads, and in processes that fork."""

from __future__ import annotations

import os
import sys
import threading

import rushlight_core as core
from rushlight_core.seams.profiler import Argument, Event
from rushlight_profiler import _C, profile, record_function


def run(*functions):
    threads = [threading.Thread(target=f, name=f"worker {i}") for i, f in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_new_threads_are_recorded_under_their_names(x):
    def work():
        x + x
        with record_function("span"):
            x.clone()

    with profile() as prof:
        run(work, work)
        x.select(0, 0)
    by_thread: dict[int, list[str]] = {}
    for event in prof.events():
        by_thread.setdefault(event.thread, []).append(event.name)
    assert sorted(by_thread.values()) == [["add", "span", "clone"], ["add", "span", "clone"], ["select"]]
    threads = prof.recording.header.threads
    assert sorted(threads.values()) == ["MainThread", "worker 0", "worker 1"]
    assert next(iter(threads)) == threading.get_native_id()
    ids = [event.id for event in prof.events()]
    assert len(set(ids)) == len(ids)


def test_a_thread_that_ran_before_joins_with_its_first_span(x):
    steps = [threading.Event() for _ in range(4)]

    def work():
        steps[0].wait()
        x + x
        with record_function("joins"):
            x.clone()
        x.select(0, 0)
        steps[1].set()
        steps[2].wait()
        x + x  # the recording has ended, so the thread stops recording
        x + x
        steps[3].set()

    thread = threading.Thread(target=work)
    thread.start()
    with profile() as prof:
        steps[0].set()
        steps[1].wait()
    assert [event.name for event in prof.events()] == ["joins", "clone", "select"]
    steps[2].set()
    steps[3].wait()
    thread.join()
    with profile() as again:
        pass
    assert again.events() == []


def test_memory_of_all_threads_is_recorded():
    big = core.tensor([0.0] * 4096)
    go, done = threading.Event(), threading.Event()

    def work():
        go.wait()
        big.clone()
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with profile(profile_memory=True) as prof:
        go.set()
        done.wait()
    thread.join()
    changes = [event.nbytes for event in prof.recording.raw if abs(event.nbytes) == 4 * 4096]
    assert changes == [4 * 4096, -4 * 4096]
    assert prof.events() == []


def test_a_users_own_profile_function_of_threads_is_called_and_comes_back(x):
    calls = []

    def mine(frame, event, argument):
        calls.append(event)

    former = threading.getprofile()
    threading.setprofile(mine)
    try:
        with profile() as prof:
            run(lambda: x + x)
        assert threading.getprofile() is mine
    finally:
        threading.setprofile(former)
    assert [event.name for event in prof.events()] == ["add"]
    assert calls[0] == "call"
    assert len(calls) > 2  # it stayed set on that thread


def test_no_profile_function_stays_on_a_thread(x):
    seen = []
    with profile():
        run(lambda: seen.append(sys.getprofile()))
    assert seen == [None]
    assert threading.getprofile() is None


def test_many_threads_at_once(x):
    def work():
        for _ in range(300):
            with record_function("round"):
                x + x

    with profile(record_shapes=True, profile_memory=True) as prof:
        run(*[work] * 8)
    rows = {row.key: row for row in prof.key_averages(group_by_input_shape=True)}
    assert rows["round"].count == rows["add"].count == 2400
    assert all(event.cpu_parent.name == "round" for event in prof.events() if event.name == "add")
    assert prof.recording.header.dropped == 0


def test_starting_and_stopping_while_threads_work(x):
    """Each window contains only complete spans of its own time, whatever the threads do at its begin and end."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            with record_function("round"):
                x + x

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for size in (16, 1024) * 20:
            _C.start(_C.SHAPES, size)
            for _ in range(20):
                x + x
            _C.stop()
            _, duration, _, _, _, _, events = _C.collect(True, Event, Argument)
            spans = {event.id: event for event in events}
            assert len(spans) == len(events)
            for event in events:
                assert 0 <= event.begin <= event.end
                assert event.begin <= duration
                if event.name == "add":
                    assert event.arguments[0] == ("float32", (2, 3))
                if event.parent in spans:
                    assert spans[event.parent].begin <= event.begin <= event.end <= spans[event.parent].end
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_span_that_is_open_while_the_recording_changes(x):
    """The thread's buffers are replaced by larger ones while the span is open. The span is in neither recording."""
    steps = [threading.Event() for _ in range(4)]

    def work():
        with record_function("too long"):
            x + x
            steps[0].set()
            steps[1].wait()
            x + x
        with record_function("whole"):
            x.clone()
        steps[2].set()
        steps[3].wait()

    with profile(buffer_events=16) as first:
        thread = threading.Thread(target=work)
        thread.start()
        steps[0].wait()
    with profile(buffer_events=4096, record_shapes=True) as second:
        steps[1].set()
        steps[2].wait()
    steps[3].set()
    thread.join()
    assert [event.name for event in first.events()] == ["add"]
    assert [event.name for event in second.events()] == ["add", "whole", "clone"]
    assert second.events()[0].cpu_parent is None


def test_a_forked_child_records_nothing_and_can_record_anew(x):
    with profile() as prof:
        x + x
        child = os.fork()
        if child == 0:
            status = 1
            try:
                x + x
                with record_function("child"):
                    x + x
                prof.stop()
                own = profile()
                with own:
                    x.clone()
                if prof.events() == [] and [event.name for event in own.events()] == ["clone"]:
                    status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        x.clone()
    assert os.waitstatus_to_exitcode(status) == 0
    assert [event.name for event in prof.events()] == ["add", "clone"]
