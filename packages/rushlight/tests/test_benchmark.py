"""`utils.benchmark`, with a clock that advances only when the test does so."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from rushlight.utils.benchmark import Compare, Measurement, TaskSpec, Timer, select_unit, trim_sigfig


class Clock:
    """A clock that every run of the statement `tick()` advances by the next element of `seconds`."""

    def __init__(self, *seconds: float) -> None:
        self.now, self.runs, self.seconds = 0.0, 0, seconds

    def __call__(self) -> float:
        return self.now

    def tick(self) -> None:
        self.now += self.seconds[self.runs % len(self.seconds)]
        self.runs += 1


def timer(clock: Clock, **options: Any) -> Timer:
    return Timer("tick()", timer=clock, globals={"tick": clock.tick}, **options)


def test_timeit() -> None:
    clock = Clock(0.5)
    found = timer(clock).timeit(200)
    assert (found.number_per_run, found.raw_times, found.median) == (200, [100.0], 0.5)
    assert clock.runs == 202


def test_blocks_are_long_enough() -> None:
    clock, seen = Clock(2**-20), []
    found = timer(clock).blocked_autorange(lambda number, t: seen.append((number, t)), min_run_time=0.25)
    assert found.number_per_run == 10_000
    assert sum(found.raw_times[:-1]) < 0.25 <= sum(found.raw_times)
    assert seen == [(10_000, t) for t in found.raw_times]
    assert found.mean == found.median == 2**-20
    assert found.iqr == 0.0


def test_measuring_ends_when_times_agree_or_time_is_up() -> None:
    steady = timer(Clock(1.0)).adaptive_autorange(max_run_time=100.0)
    assert len(steady.raw_times) == 5
    assert not steady.has_warnings
    wild = timer(Clock(1.0, 9.0)).adaptive_autorange(max_run_time=100.0)
    assert 100.0 <= sum(wild.raw_times) <= 109.0
    assert wild.has_warnings
    assert "WARNING" in repr(wild)


def test_threads_and_names_of_the_statement() -> None:
    seen: list[int] = []
    before = rushlight.get_num_threads()
    Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=before + 1).timeit(1)
    assert set(seen) == {before + 1}
    assert rushlight.get_num_threads() == before
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0", num_threads=before + 1).timeit(1)
    assert rushlight.get_num_threads() == before
    assert Timer("\n    x\n    y\n", setup="\n    x = y = 1\n").timeit(1).task_spec.stmt == "x\ny"
    for options in ({"language": "c++"}, {"global_setup": "#include <x>"}):
        with pytest.raises(NotImplementedError, match="C\\+\\+"):
            Timer("x", **options)


def measured(times: list[float], number: int = 1, **spec: Any) -> Measurement:
    return Measurement(number, times, TaskSpec("x", **spec))


def test_figures() -> None:
    assert [select_unit(t)[0] for t in (3.0, 0.02, 3e-6, 2e-9, 1e-12)] == ["s", "ms", "us", "ns", "ns"]
    assert [trim_sigfig(1234.5678, n) for n in (1, 3, 6)] == [1000.0, 1230.0, 1234.57]
    assert measured([1.0] * 4).significant_figures == 5
    assert measured([1.0, 1.1, 1.2, 1.3]).iqr == pytest.approx(0.15)
    assert measured([1.0, 1.1, 1.2, 1.3]).significant_figures == 1
    assert measured([1.0, 1.01, 1.02, 1.03] * 4).significant_figures == 3
    assert repr(measured([14e-3], 7, label="a", sub_label="b")).split("\n  ") == [
        "Measurement: a: b",
        "Time: 2 ms",
        "1 measurement, 7 runs per measurement, 1 thread",
    ]
    both = Measurement.merge([measured([2.0], 2), measured([4.0], 2), measured([1.0], label="z")])
    assert [one.times for one in both] == [[1.0, 2.0], [1.0]]
    assert Measurement.merge([measured([2.0], 2), measured([4.0], 4)])[0].raw_times == [1.0, 1.0]


def test_tables() -> None:
    results = [
        measured([t * 1e-6], label="op", sub_label=size, description=name, num_threads=threads)
        for threads in (1, 2)
        for size, name, t in (("small", "ours", 2.0), ("small", "theirs", 30.25), ("large", "ours", 400.0))
    ]
    table = Compare(results)
    lines = str(table).splitlines()
    assert lines[0].startswith("[-")
    assert " op " in lines[0]
    assert lines[1].split() == ["|", "ours", "|", "theirs"]
    assert lines[2].startswith("1 thread: ---")
    assert lines[3].split() == ["small", "|", "2.0", "|", "30.2"]
    assert lines[4].split() == ["large", "|", "400.0", "|"]
    assert lines[5].startswith("2 threads: ---")
    assert lines[-1] == "Times are in microseconds (us)."
    assert len({len(line) for line in (lines[0], lines[2], lines[5])}) == 1
    table.colorize(rowwise=True)
    assert "\033[92m\033[1m  2.0\033[0m" in str(table)
    assert "\033[91m" in str(table)
    with pytest.raises(ValueError, match="measurements"):
        table.extend_results([1.0])  # type: ignore[list-item]


def test_warnings_and_figures_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    table = Compare([measured([1.04, 2.08, 3.12], label="op")])
    table.trim_significant_figures()
    table.highlight_warnings()
    table.print()
    shown = capsys.readouterr().out
    assert "(! 50%) 2" in shown
    assert "high variance" in shown
