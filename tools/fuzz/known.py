"""Differences that are known: known.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.compare import KINDS, Difference
from fuzz.program import MODES

TABLE = Path(__file__).with_name("known.yaml")


@dataclass
class Known:
    """An entry: an operator, a kind of difference, and why it is there."""

    op: str  # its out= form, too; "*": whatever operator; "a+b": programs that need both
    kind: str
    reason: str
    mode: str = ""
    text: str = ""  # a part of the difference's text
    met: int = 0

    def covers(self, mode: str, d: Difference) -> bool:
        same = self.op == "*" or self.op in (d.op, d.op.removesuffix(".out")) or self.op in d.op.split("+")
        return same and self.kind == d.kind and self.mode in ("", mode) and self.text in d.text


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def read(entries: Any) -> list[Known]:
    """The table as it was read from YAML.

    Raises:
        ValueError: an entry has no reason, or a kind or mode that there is not.
    """
    table = []
    for entry in entries or []:
        for op in _listed(entry["op"]):
            table += [Known(**{**entry, "op": op, "kind": kind}) for kind in _listed(entry["kind"])]
    for one in table:
        if one.kind not in KINDS:
            raise ValueError(f"{one.op}: {one.kind!r} is no kind; there are {', '.join(KINDS)}")
        if one.mode and one.mode not in MODES:
            raise ValueError(f"{one.op}: {one.mode!r} is no mode; there are {', '.join(MODES)}")
        if not one.reason.strip():
            raise ValueError(f"{one.op}: a known difference needs a reason")
    return table
