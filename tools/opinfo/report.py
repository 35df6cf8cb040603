"""Count the results of the comparison: which operators are complete, by tier, and which differences exist.

An operator is *complete* when every sample, gradient and error input agrees, or differs in a way that differences.yaml lists
with a reason; *agreeing* operators need no such entry. *Absent* operators do not exist here and count as not complete.
Operators for which nothing could be compared (GPUs only, other layouts) are listed and not counted.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from known_differences import Known, covered

from opinfo.comparison import Difference, Row

MEANT = Path(__file__).with_name("differences.yaml")
TIER1 = Path(__file__).with_name("tier1.txt")
# error: the classes of errors differ. raises: only one library raises.
KINDS = ("values", "dtype", "shape", "gradient", "error", "raises", "crash")


def read_names(text: str) -> list[str]:
    """Return the names in a file, separated by spaces and lines. Comments begin with # and end with the line."""
    return [name for line in text.splitlines() for name in line.partition("#")[0].split()]


@dataclass
class Report:
    """All rows, sorted by their result."""

    rows: list[Row]
    tier1: set[str]
    left: dict[str, list[Difference]] = field(default_factory=dict)  # unintended differences, by operator
    stale: list[Known] = field(default_factory=list)

    def status(self, row: Row) -> str:
        if row.absent:
            return "absent"
        if self.left[row.op]:
            return "differs"
        if not row.samples + row.errors:
            return "not compared"
        return "meant" if row.differences else "agrees"

    def named(self, status: str, tier: int = 0) -> list[str]:
        return [
            row.op
            for row in self.rows
            if self.status(row) == status and tier in (0, 1 if row.op in self.tier1 else 2)
        ]

    def counts(self, tier: int) -> collections.Counter[str]:
        return collections.Counter(
            self.status(row) for row in self.rows if (row.op in self.tier1) == (tier == 1)
        )

    def complete(self, tier: int) -> tuple[int, int]:
        """Return the number of complete operators of a tier, and the number of all its operators."""
        counts = self.counts(tier)
        total = counts.total() - counts["not compared"]
        return counts["agrees"] + counts["meant"], total

    def as_json(self) -> dict[str, Any]:
        tiers = {}
        for tier, name in ((1, "tier 1"), (2, "others")):
            complete, total = self.complete(tier)
            tiers[name] = {"complete": complete, "of": total, **self.counts(tier)}
        operators = {
            row.op: {
                "tier": 1 if row.op in self.tier1 else 2,
                "status": self.status(row),
                "left": len(self.left[row.op]),
                **row.as_json(),
            }
            for row in self.rows
        }
        return {"tiers": tiers, "operators": operators}


def sort_out(rows: list[Row], table: list[Known], tier1: set[str]) -> Report:
    """Return the rows with unintended differences, and the entries that no longer differ."""
    report = Report(rows, tier1)
    for row in rows:
        report.left[row.op] = []
        for d in row.differences:
            if not covered(table, d, {d.op}):
                report.left[row.op].append(d)
    compared = {row.op for row in rows}
    report.stale = [entry for entry in table if not entry.met and entry.op in compared]
    return report


def lines(report: Report, shown: int = 3) -> list[str]:
    """Return the report as text: operators that differ, the first few differences of each, and the counts."""
    text = []
    for row in sorted(report.rows, key=lambda row: (row.op not in report.tier1, row.op)):
        left = report.left[row.op]
        if not left:
            continue
        kinds = collections.Counter(d.kind for d in left)
        tier = "tier 1" if row.op in report.tier1 else "others"
        text.append(f"{row.op} ({tier}): {', '.join(f'{n} {check}' for check, n in kinds.items())}")
        first: dict[tuple[str, str], Difference] = {}
        for d in left:
            first.setdefault((d.kind, d.dtype), d)
        for d in list(first.values())[:shown]:
            text.append(f"    {d.kind} {d.dtype} {d.sample}: {d.text[:200]}")
    for status in ("absent", "not compared"):
        if names := report.named(status):
            text.append(f"{status} ({len(names)}):")
            text += [f"    {row.op}: {row.absent}" for row in report.rows if row.op in names]
    text += [
        f"{e.op} {e.kind} {e.dtype} {e.sample} {e.text}: does not differ any more; strike it out of {MEANT.name}"
        for e in report.stale
    ]
    for number, name in ((1, "tier 1"), (2, "others")):
        complete, total = report.complete(number)
        if total:
            counts = ", ".join(f"{n} {what}" for what, n in sorted(report.counts(number).items()))
            present = total - report.counts(number)["absent"]
            text.append(
                f"{name}: {complete} of {total} complete, {100 * complete / total:.1f} %"
                f" ({100 * complete / max(present, 1):.1f} % of those that are here); {counts}"
            )
    return text
