"""Tables of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rushlight.utils.benchmark.measurement import Measurement, select_unit, trim_sigfig, unit_to_english

_BEST, _GOOD, _BAD, _END = "\033[92m\033[1m", "\033[34m", "\033[91m", "\033[0m"


class Compare:
    """Tables of measurements: one for each label, with a column for each description and a row for each sub-label.

    Rows are grouped by the number of threads. Measurements of the same task are merged.

    Args:
        results: measurements that timers returned.

    Raises:
        ValueError: an element of `results` is not a Measurement.

    Example:
        >>> import rushlight.utils.benchmark as benchmark
        >>> timer = benchmark.Timer("x + 1", globals={"x": torch.ones(2)}, label="add", description="small")
        >>> table = benchmark.Compare([timer.timeit(10)])
        >>> "small" in str(table)
        True
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = self._color = self._warn = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements.

        Raises:
            ValueError: an element is not a Measurement.
        """
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Compare(results): needs measurements, got {type(one).__name__}")
            self._results.append(one)

    def trim_significant_figures(self) -> None:
        """Show only significant figures."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Color the times of each column (or of each row, with `rowwise`).

        Times up to 5 % longer than the best one are green, other times up to 20 % longer are blue, and times at least twice
        as long are red.
        """
        self._color, self._rowwise = True, rowwise

    def highlight_warnings(self) -> None:
        """Mark measurements whose times vary so much that their median is not reliable."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = dict.fromkeys(one.task_spec.label or one.task_spec.stmt for one in merged)
        return "\n".join(
            self._table(
                label, [one for one in merged if (one.task_spec.label or one.task_spec.stmt) == label]
            )
            for label in labels
        )

    def _table(self, label: str, results: list[Measurement]) -> str:
        unit, size = select_unit(min(one.median for one in results))
        columns = list(dict.fromkeys(one.task_spec.description or "" for one in results))
        environments = list(dict.fromkeys(one.env for one in results))
        cells = {(_row(one), one.task_spec.description or ""): one for one in results}
        rows = list(dict.fromkeys(_row(one) for one in results))
        names = {row: row[2] + (f" ({row[1]})" if len(environments) > 1 else "") for row in rows}
        first = max(len(name) for name in names.values()) + 6
        texts = {key: self._text(one, size) for key, one in cells.items()}
        widths = {
            column: max(len(column), *(len(texts.get((row, column), "")) for row in rows))
            for column in columns
        }
        total = first + sum(width + 5 for width in widths.values())
        lines = [f" {label} ".center(total, "-").join("[]")]
        lines.append(" " * first + "".join(f"  |  {column:>{widths[column]}}" for column in columns))
        threads = None
        for row in sorted(rows, key=lambda row: row[0]):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} thread{'s' if threads > 1 else ''}: ".ljust(total + 2, "-"))
            shown = f"      {names[row]}".ljust(first)
            for column in columns:
                text = texts.get((row, column), "").rjust(widths[column])
                shown += f"  |  {self._colored(text, row, column, cells)}"
            lines.append(shown)
        lines.append(f"\nTimes are in {unit_to_english(unit)}s ({unit}).")
        if self._warn and any(one.has_warnings for one in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(lines) + "\n"

    def _text(self, one: Measurement, size: float) -> str:
        value = one.median / size
        text = f"{trim_sigfig(value, one.significant_figures):g}" if self._trim else f"{value:.1f}"
        mark = f"(! {one.iqr / one.median:.0%}) " if self._warn and one.has_warnings else ""
        return mark + text

    def _colored(self, text: str, row: _Row, column: str, cells: dict[tuple[_Row, str], Measurement]) -> str:
        if not self._color or (row, column) not in cells:
            return text
        others: Sequence[Measurement] = [
            one
            for (r, c), one in cells.items()
            if (r == row if self._rowwise else c == column and r[0] == row[0])
        ]
        best, value = min(one.median for one in others), cells[row, column].median
        color = (
            _BEST
            if value <= 1.05 * best
            else _GOOD
            if value <= 1.2 * best
            else _BAD
            if value >= 2 * best
            else ""
        )
        return f"{color}{text}{_END}" if color else text


_Row = tuple[int, str, str]


def _row(one: Measurement) -> _Row:
    return one.task_spec.num_threads, one.env, one.as_row_name
