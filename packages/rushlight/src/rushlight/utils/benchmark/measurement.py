"""The times of a statement, and their statistics."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_UNITS = (
    ("ns", "nanosecond", 1e-9),
    ("us", "microsecond", 1e-6),
    ("ms", "millisecond", 1e-3),
    ("s", "second", 1.0),
)


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which a time of `t` seconds is easy to read, and the length of the unit in seconds.

    Example:
        >>> select_unit(0.0025)
        ('ms', 0.001)
    """
    return next(((unit, size) for unit, _, size in reversed(_UNITS) if t >= size), ("ns", 1e-9))


def unit_to_english(u: str) -> str:
    """Return the English name of a unit of time.

    Raises:
        KeyError: the unit is unknown.

    Example:
        >>> unit_to_english("us")
        'microsecond'
    """
    return {unit: word for unit, word, _ in _UNITS}[u]


def trim_sigfig(x: float, n: int) -> float:
    """Round `x` to `n` significant figures.

    Example:
        >>> trim_sigfig(1234.5, 2)
        1200.0
    """
    return float(f"{x:.{n - 1}e}") if x else 0.0


@dataclass(frozen=True)
class TaskSpec:
    """Description of a measurement: the statement, and its names in tables.

    Example:
        >>> TaskSpec("x + 1", label="add", sub_label="small").title
        'add: small'
    """

    stmt: str
    setup: str = ""
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, followed by the sub-label if there is one. If there is no label, the title is the statement."""
        if self.label is None:
            return self.stmt
        return self.label + (f": {self.sub_label}" if self.sub_label else "")


@dataclass
class Measurement:
    """The times of a statement. Each time was measured for a block of several runs of the statement.

    Args:
        number_per_run: the number of runs in each block.
        raw_times: the time of each block, in seconds.
        task_spec: the description of the measurement.
        metadata: further data to store.

    Example:
        >>> Measurement(10, [0.02, 0.03, 0.04], TaskSpec("x + 1")).median
        0.003
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None, compare=False)

    @property
    def times(self) -> list[float]:
        """For each block, the time of one run in seconds."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of `times`."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range of `times`: the width of their middle half."""
        if len(self.raw_times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def significant_figures(self) -> int:
        """The number of significant figures of the median, from 1 to 5.

        The median is assumed to be known within 1.57 IQR / √n (McGill, Tukey and Larsen: "Variations of box plots", 1978).
        """
        if not self.median:
            return 5
        uncertain = 1.57 * self.iqr / math.sqrt(len(self.raw_times)) / self.median
        return 5 if uncertain <= 1e-5 else max(1, min(5, math.floor(-math.log10(uncertain)) + 1))

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary so much that the median is not reliable."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Return whether the interquartile range is below `threshold` times the median."""
        return not self.median or self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The title of the measured task."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment of the measurement, or "Unspecified env" if none was given."""
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self) -> str:
        """The name of this measurement in a table: its sub-label or, without a sub-label, the statement."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, size = select_unit(self.median)
        lines = [f"{type(self).__name__}: {self.title}"]
        if self.task_spec.description and self.task_spec.label:
            lines.append(self.task_spec.description)
        if self.task_spec.setup and self.task_spec.setup != "pass":
            lines.append(f"setup: {self.task_spec.setup}")
        many = len(self.raw_times) > 1
        lines.append(
            f"{'Median' if many else 'Time'}: {trim_sigfig(self.median / size, self.significant_figures):g} {unit}"
        )
        if many:
            lines.append(f"IQR: {trim_sigfig(self.iqr / size, 2):g} {unit}")
        runs, threads = self.number_per_run, self.task_spec.num_threads
        lines.append(
            f"{len(self.raw_times)} measurement{'s' if many else ''}, {runs} run{'s' if runs > 1 else ''} per measurement, "
            f"{threads} thread{'s' if threads > 1 else ''}"
        )
        if self.has_warnings:
            lines.append(f"WARNING: the interquartile range is {self.iqr / self.median:.0%} of the median")
        return "\n  ".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merge the measurements of each task into one measurement that contains all their times."""
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for one in measurements:
            grouped.setdefault(one.task_spec, []).append(one)
        return [
            Measurement(1, [t for one in group for t in one.times], spec)
            if len({one.number_per_run for one in group}) > 1
            else Measurement(group[0].number_per_run, [t for one in group for t in one.raw_times], spec)
            for spec, group in grouped.items()
        ]
