"""Tables of known differences from PyTorch, with reasons.

A table is a YAML list of entries. Each has the keys `op`, an operator, `kind`, the way in which it differs, and `reason`;
`op` and `kind` may be lists. Five keys restrict an entry: `dtype` and `mode` must equal the difference's, `sample` and
`text` must occur in the difference's sample and text, and `pattern` is a regular expression that must be found in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any


@dataclass
class Known:
    """An entry for one operator and one kind of difference."""

    op: str
    kind: str
    reason: str
    dtype: str = ""
    mode: str = ""
    sample: str = ""
    text: str = ""
    pattern: str = ""
    met: int = 0  # how many differences it has covered

    def covers(self, d: Any, names: Collection[str], mode: str = "") -> bool:
        """Return whether the entry covers `d`, a difference of an operator with these names."""
        if self.op not in names or self.kind != d.kind or self.mode not in ("", mode):
            return False
        has = {key: getattr(d, key, "") for key in ("dtype", "sample", "text")}
        if self.pattern and not re.search(self.pattern, has["text"]):
            return False
        return self.dtype in ("", has["dtype"]) and self.sample in has["sample"] and self.text in has["text"]


_KEYS = {f.name for f in fields(Known)} - {"met"}


def read(entries: Any, kinds: Collection[str], modes: Collection[str] = ()) -> list[Known]:
    """Return the table as it was read from YAML, an entry for each operator and kind.

    Raises:
        ValueError: an entry has no reason, an unknown key, a kind or mode that is not in `kinds` or `modes`, or an invalid
            regular expression.
    """
    table = []
    for entry in entries or []:
        if unknown := set(entry) - _KEYS:
            raise ValueError(f"{entry.get('op')}: {', '.join(sorted(unknown))} is not a key of an entry")
        for op in _listed(entry["op"]):
            table += [Known(**{**entry, "op": op, "kind": kind}) for kind in _listed(entry["kind"])]
    for one in table:
        if one.kind not in kinds:
            raise ValueError(f"{one.op}: {one.kind!r} is not a kind; expected one of {', '.join(kinds)}")
        if one.mode and one.mode not in modes:
            raise ValueError(
                f"{one.op}: {one.mode!r} is not a mode; expected one of {', '.join(modes) or 'none'}"
            )
        try:
            re.compile(one.pattern)
        except re.error as error:
            raise ValueError(f"{one.op}: {one.pattern!r} is not a regular expression: {error}") from None
        if not one.reason.strip():
            raise ValueError(f"{one.op}: a known difference needs a reason")
    return table


def covered(table: list[Known], d: Any, names: Collection[str], mode: str = "") -> bool:
    """Return whether an entry covers `d`, and count `d` in the entries that cover it."""
    covering = [entry for entry in table if entry.covers(d, names, mode)]
    for entry in covering:
        entry.met += 1
    return bool(covering)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
