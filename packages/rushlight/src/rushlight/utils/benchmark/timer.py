"""Measurement of the time that a statement takes."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NoReturn

import rushlight
from rushlight.utils.benchmark.measurement import Measurement, TaskSpec

_MOST_RUNS = 10**9


def timer() -> float:
    """Wait for the work that was submitted to the GPU, and return the time of a clock in seconds.

    Example:
        >>> begin = timer()
        >>> timer() >= begin
        True
    """
    if rushlight.cuda.is_available() and rushlight.cuda.is_initialized():
        rushlight.cuda.synchronize()
    return perf_counter()


class Timer:
    """Measures the time of a statement, with one thread by default.

    Args:
        stmt: Python code.
        setup: code that runs once before each measurement.
        global_setup: must be empty, because C++ is not measured.
        timer: a clock, which is a function that returns the time in seconds.
        globals: a dict of the names that the code can use, in addition to `torch`.
        label, sub_label, description, env: names of the statement in tables.
        num_threads: the number of threads of kernels while the statement is measured.
        language: must be Python.

    Raises:
        NotImplementedError: `language` is not Python, or `global_setup` is not empty.

    Example:
        >>> measured = Timer("x + 1", globals={"x": torch.ones(2)}).timeit(100)
        >>> measured.median > 0
        True
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ) -> None:
        if str(language).lower() not in ("python", "py", "language.python") or global_setup:
            raise NotImplementedError(
                "Timer(language, global_setup): statements of C++ are not measured\nhint: pass language='python'"
            )
        self._timer = timeit.Timer(_code(stmt), _code(setup), timer, {"torch": rushlight, **(globals or {})})
        self._task_spec = TaskSpec(
            _code(stmt), _code(setup), "", label, sub_label, description, env, num_threads
        )

    @contextmanager
    def _threads(self) -> Iterator[None]:
        before = rushlight.get_num_threads()
        rushlight.set_num_threads(self._task_spec.num_threads)
        try:
            yield
        finally:
            rushlight.set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Return one measurement of `number` runs, after max(`number` // 100, 2) warm-up runs."""
        with self._threads():
            self._timer.timeit(max(number // 100, 2))
            return Measurement(number, [self._timer.timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Raise NotImplementedError: use `blocked_autorange`, which chooses the number of runs."""
        raise NotImplementedError("Timer.repeat(): is not supported\nhint: use blocked_autorange()")

    def _block_size(self, min_run_time: float) -> int:
        """Return how many runs take 1 % of `min_run_time`, so that the time to read the clock is negligible."""
        number = 1
        while self._timer.timeit(number) < min_run_time / 100 and number < _MOST_RUNS:
            number *= 10
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], None] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure blocks of runs until they have taken `min_run_time` seconds in total.

        Args:
            callback: a function that is called after each block with the number of runs and the time in seconds that
                they took.
            min_run_time: the smallest total time of the blocks, in seconds.
        """
        with self._threads():
            number = self._block_size(min_run_time)
            times: list[float] = []
            while sum(times) < min_run_time:
                times.append(self._timer.timeit(number))
                if callback is not None:
                    callback(number, times[-1])
            return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], None] | None = None,
    ) -> Measurement:
        """Measure blocks of runs until the interquartile range is below `threshold` times the median.

        Args:
            threshold: the upper limit of the ratio of the interquartile range to the median.
            min_run_time, max_run_time: the smallest and the largest total time of the blocks, in seconds.
            callback: a function that is called after each block with the number of runs and the time in seconds that
                they took.
        """
        with self._threads():
            number = self._block_size(min_run_time)
            times: list[float] = []
            while True:
                times.append(self._timer.timeit(number))
                if callback is not None:
                    callback(number, times[-1])
                found = Measurement(number, times, self._task_spec)
                settled = len(times) >= 5 and sum(times) >= min_run_time and found.meets_confidence(threshold)
                if settled or sum(times) >= max_run_time:
                    return found

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: counting instructions is not supported."""
        raise NotImplementedError("Timer.collect_callgrind(): counting instructions is not supported")


def _code(text: str) -> str:
    """Return code without the indentation that all lines have in common, as `timeit` requires."""
    from textwrap import dedent

    return dedent(text).strip() or "pass"
