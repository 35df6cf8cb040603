"""The timing loop, on a simulated clock: nothing here depends on the machine."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness import (
    Loop,
    Plan,
    Series,
    WrongResultError,
    calibrate,
    compare,
    compile_loop,
    data,
    empty_loop,
    interleave,
    result_expression,
)
from benchmarks.rows import Row
from benchmarks.suites.micro import summarize_row


class FakeClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns

    def seconds(self) -> float:
        return self.ns / 1e9


class FakeSubject:
    """A subject whose calls take a fixed time, plus the cost of the loop, plus the time that `interrupt` adds to a block."""

    def __init__(self, name: str, clock: FakeClock, call_ns: int, loop_ns: int = 0) -> None:
        self.name = name
        self.calls: list[int] = []
        self.interrupt: Callable[[int], int] = lambda block: 0
        self._clock = clock
        self._per_iteration = call_ns + loop_ns

    def run(self, count: int) -> int:
        self.calls.append(count)
        elapsed = count * self._per_iteration + self.interrupt(len(self.calls))
        self._clock.ns += elapsed
        return elapsed


PLAN = Plan(rounds=20, block_s=1e-4, seconds=1e9)


def test_loop_runs_the_statement_once_per_item() -> None:
    seen: list[int] = []
    compile_loop("seen.append(1)", {"seen": seen})(range(5))
    assert len(seen) == 5


def test_statement_may_assign_and_span_lines() -> None:
    box = [0]
    compile_loop("y = box[0] + 1\nif y > 2:\n    y = y * 10\nbox[0] = y", {"box": box})(range(3))
    assert box == [30]


def test_names_of_a_statement_are_locals_of_its_loop() -> None:
    loop = compile_loop("a + b", {"a": 1, "b": 2, "unused": 3})
    assert {"a", "b"} <= set(loop.__code__.co_varnames)
    assert "unused" not in loop.__code__.co_varnames
    assert loop.__code__.co_names == ()


def test_loop_reads_its_clock_around_the_statements_only() -> None:
    clock = FakeClock()

    def work() -> None:
        clock.ns += 40

    loop = Loop("work", "work()", {"work": work}, clock)
    assert loop.run(25) == 25 * 40
    assert loop.run(0) == 0
    assert empty_loop(clock).run(1000) == 0


def test_loop_cost_is_subtracted() -> None:
    clock = FakeClock()
    subjects = [
        FakeSubject("ours", clock, call_ns=30, loop_ns=12),
        FakeSubject("theirs", clock, call_ns=100, loop_ns=12),
        FakeSubject("loop", clock, call_ns=0, loop_ns=12),
    ]
    result = summarize_row(Row("row", "pass", target=0.3), interleave(subjects, PLAN))
    assert result["loop_ns"] == pytest.approx(12)
    assert result["ns"]["subject"]["median"] == pytest.approx(30)
    assert result["ns"]["peer"]["median"] == pytest.approx(100)
    assert result["ratio"]["value"] == pytest.approx(0.3)  # with the loop it would read 0.375


def test_ratio_to_numpy_is_given_where_numpy_ran() -> None:
    clock = FakeClock()
    subjects = [
        FakeSubject(name, clock, call) for name, call in (("a", 50), ("b", 100), ("numpy", 25), ("loop", 1))
    ]
    result = summarize_row(Row("row", "pass"), interleave(subjects, PLAN))
    assert result["numpy_ratio"]["value"] == pytest.approx(49 / 24)
    assert set(result["ns"]) == {"subject", "peer", "numpy"}


def test_interruptions_do_not_move_the_ratio() -> None:
    clock = FakeClock()
    subjects = [FakeSubject("a", clock, 20), FakeSubject("b", clock, 100), FakeSubject("loop", clock, 0)]
    subjects[0].interrupt = lambda block: 5_000_000 if block % 7 == 0 else 0
    subjects[1].interrupt = lambda block: 3_000_000 if block % 11 == 0 else 0
    subjects[2]._per_iteration = 1
    result = summarize_row(Row("row", "pass"), interleave(subjects, replace(PLAN, rounds=60)))
    assert result["ratio"]["value"] == pytest.approx(19 / 99)


def test_calibration_fills_a_block() -> None:
    clock = FakeClock()
    assert calibrate(FakeSubject("a", clock, 50), block_s=1e-3) == 20_000
    assert calibrate(FakeSubject("slow", clock, 10**9), block_s=1e-3) == 1


def test_calibration_survives_one_interruption() -> None:
    subject = FakeSubject("a", FakeClock(), 50)
    subject.interrupt = lambda block: 10**9 if block == 2 else 0
    assert calibrate(subject, block_s=1e-3) == 20_000


def test_every_subject_is_measured_in_every_round_and_the_order_varies() -> None:
    clock = FakeClock()
    order: list[str] = []

    class Recorded(FakeSubject):
        def run(self, count: int) -> int:
            order.append(self.name)
            return super().run(count)

    series = interleave([Recorded(name, clock, 200_000) for name in "abc"], replace(PLAN, rounds=30))
    assert [len(one.blocks) for one in series] == [30, 30, 30]
    timed = "".join(order)[-90:]  # blocks of one call: their warm-up has no calls but is recorded
    rounds = {"".join(sorted(set(order[-180:][start : start + 6]))) for start in range(0, 180, 6)}
    assert rounds == {"abc"}
    assert len({timed[start : start + 6] for start in range(0, 90, 6)}) > 1


def test_budget_ends_a_row_after_the_minimum_of_rounds() -> None:
    clock = FakeClock()
    subjects = [FakeSubject("a", clock, 10**9), FakeSubject("b", clock, 10**9)]
    plan = Plan(rounds=50, minimum_rounds=3, block_s=1e-3, seconds=9.0)
    series = interleave(subjects, plan, now=clock.seconds)
    assert [len(one.blocks) for one in series] == [5, 5]
    slow = Plan(rounds=50, minimum_rounds=3, block_s=1e-3, seconds=0.1)
    assert len(interleave(subjects, slow, now=clock.seconds)[0].blocks) == 3


def test_pause_precedes_every_block_when_threads_must_settle() -> None:
    clock = FakeClock()
    pauses: list[float] = []
    plan = replace(PLAN, rounds=4, settle_s=0.005)
    interleave([FakeSubject("a", clock, 50), FakeSubject("b", clock, 50)], plan, sleep=pauses.append)
    assert pauses == [0.005] * 8


def test_collector_is_off_while_measuring_and_restored_after() -> None:
    states: list[bool] = []

    class Watching(FakeSubject):
        def run(self, count: int) -> int:
            states.append(gc.isenabled())
            return super().run(count)

    assert gc.isenabled()
    interleave([Watching("a", FakeClock(), 50)], replace(PLAN, rounds=2))
    assert states
    assert not any(states)
    assert gc.isenabled()


def test_series_knows_its_time_per_call() -> None:
    assert Series(count=10, blocks=[1000, 2000]).per_call(loop_cost=5.0) == [95.0, 195.0]


def test_data_is_seeded_and_well_behaved() -> None:
    values = data(4, 8)
    assert values.dtype == np.float32
    assert values.shape == (4, 8)
    assert values.min() >= 0.5
    assert values.max() < 1.5
    assert np.array_equal(values, data(4, 8))
    assert not np.array_equal(values, data(4, 8, seed=1))


def test_disagreeing_results_are_refused() -> None:
    row = Row("row", "a + b")
    a = np.ones(3, dtype=np.float32)
    compare(row, [a, (2.0, None)], [a + np.float32(1e-7), (2.0, None)])
    with pytest.raises(WrongResultError, match=r"differs from the expected values by up to 0\.5"):
        compare(row, a, a + np.float32(0.5))
    with pytest.raises(WrongResultError, match=r"must be float64\[3\], got float32\[3\]"):
        compare(row, a, a.astype(np.float64))
    compare(row, a, a.astype(np.float64), same_type=False)
    with pytest.raises(WrongResultError, match=r"must be float32\[1, 3\], got float32\[3\]"):
        compare(row, a, a[None])
    with pytest.raises(WrongResultError, match="expected 1 results, got 2"):
        compare(row, [a, a], [a])


def test_result_expression() -> None:
    assert result_expression(Row("row", "a + b")) == "a + b"
    assert result_expression(Row("row", "step()", result="w.grad")) == "w.grad"
    assert result_expression(Row("row", "x = 1")) is None
