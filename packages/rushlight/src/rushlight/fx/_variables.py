"""Names of nodes and variables, which are valid in Python and unused."""

from __future__ import annotations

import builtins
import keyword
import re

_OWN_NAMES = ("self", "torch", "inf", "nan", "device", "math", "pytree", "fx_pytree")
_TAKEN = frozenset((*keyword.kwlist, *dir(builtins), *_OWN_NAMES))
_NUMBERED = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")


class _Names:
    """Creates names that are valid in Python and unused: "relu", "relu_1", "relu_2"."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last: dict[str, int] = {}

    def create(self, candidate: str) -> str:
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        if candidate not in self._used and candidate not in _TAKEN:
            self._used.add(candidate)
            return candidate
        match = _NUMBERED.match(candidate)
        assert match is not None
        base = match.group(1)
        number = int(match.group(2)) if match.group(2) else self._last.get(base, 0)
        while f"{base}_{number}" in self._used or number == 0:
            number += 1
        self._last[base] = number
        self._used.add(f"{base}_{number}")
        return f"{base}_{number}"
