"""Progress display of a loader: a bar on the terminal, and a line at the end of an epoch."""

from __future__ import annotations

import sys
from time import perf_counter

from .stats import LoaderStats

_WIDTH = 30
_SECONDS = 0.1  # minimum time between two updates of the bar


class Display:
    """A display of the progress of one epoch on the standard error stream.

    Arguments:
        epoch: number of the epoch.
        done: number of batches that were already returned if the epoch is resumed; otherwise 0.
        total: number of batches of the epoch; None if it is not known.
        bar: whether to show a bar. Without a terminal, only the last state of the bar is written.
        report: whether to write a line about the bottleneck of the epoch when it ends.
        stats: the loader's statistics, which the loader updates during the epoch."""

    def __init__(
        self, epoch: int, done: int, total: int | None, bar: bool, report: bool, stats: LoaderStats
    ) -> None:
        self._epoch = epoch
        self._done = self._first = done
        self._total = total
        self._bar = bar
        self._report = report
        self._stats = stats
        self._before = stats.copy()
        self._stream = sys.stderr
        self._is_terminal = self._stream.isatty()
        self._begun = perf_counter()
        self._shown_at = 0.0
        self._is_open = False

    def advance(self) -> None:
        """Count a batch, and update the bar."""
        self._done += 1
        now = perf_counter()
        if self._bar and self._is_terminal and now - self._shown_at >= _SECONDS:
            self._shown_at = now
            self._is_open = True
            self._stream.write(f"\r{self._line()}\x1b[K")
            self._stream.flush()

    def finish(self) -> None:
        """Write the final state of the bar, and the report."""
        if self._bar:
            self._total = self._done
            self._stream.write(f"\r{self._line()}\x1b[K\n" if self._is_terminal else f"{self._line()}\n")
            self._is_open = False
        if self._report:
            self._stream.write(f"epoch {self._epoch}: {self._stats.since(self._before).verdict}\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line of the progress bar if the epoch is abandoned."""
        if self._is_open:
            self._is_open = False
            self._stream.write("\n")

    def _line(self) -> str:
        seconds = max(perf_counter() - self._begun, 1e-9)
        rate = (self._done - self._first) / seconds
        if self._total is None:
            return f"epoch {self._epoch}: {self._done} batches, {rate:.1f} per second"
        share = self._done / self._total if self._total else 1.0
        full = int(share * _WIDTH)
        left = (self._total - self._done) / rate if rate else 0.0
        return (
            f"epoch {self._epoch}: {share:4.0%} |{'#' * full}{' ' * (_WIDTH - full)}| {self._done}/{self._total} "
            f"batches, {rate:.1f} per second, " + (f"{left:.0f} s left" if left else f"{seconds:.1f} s")
        )
