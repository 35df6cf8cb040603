"""Sixty operators by size, from sizes at which the cost of the call dominates to those at which the kernel does.

A size is a number of float32 elements of the main operand: 16 (overhead), 64 Ki (in cache), 16 Mi (64 MB,
memory). Both libraries use their defaults; shapes of real layers, training and the peer's best settings are in
`rows.shapes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .. import Row
from . import elements, indexing, layers
from .sizes import SIZES

# The targets: a ratio that no operator may exceed at any size, and the geometric mean of each size.
LIMIT = 1.5
MEANS = {"16": 0.30, "64Ki": 0.95, "16Mi": 0.70}


def rows() -> Iterator[Row]:
    """Yield all rows, size by size, family by family."""
    for size in SIZES:
        for module in (elements, indexing, layers):
            yield from (replace(row, target=LIMIT) for row in module.rows(size))


ROWS: tuple[Row, ...] = tuple(rows())
