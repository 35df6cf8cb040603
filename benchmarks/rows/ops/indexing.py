"""Operators that look for elements, or read and write them out of order: sorting, searching, indexing, scattering."""

from __future__ import annotations

from collections.abc import Iterator

from .. import Row
from .sizes import SIZES, matrix


def rows(size: str) -> Iterator[Row]:
    for family in (_order, _indexing, _tables):
        yield from family(size)


def _order(size: str) -> Iterator[Row]:
    lines, columns = matrix(size)
    n = SIZES[size]
    table = f"a = torch.tensor(data{lines, columns})"
    for name, statement, setup in (
        ("sort dim 1", "a.sort(1)", table),
        ("topk dim 1", f"a.topk({max(columns // 64, 2)}, 1)", table),
        ("median dim 1", "a.median(1)", table),
        ("searchsorted", "torch.searchsorted(s, a)", f"{table}; s = torch.tensor(np.sort(data({columns})))"),
        ("unique", "torch.unique(a)", f"a = torch.tensor(np.floor(data({n}) * np.float32(1000)))"),
    ):
        # Unless a sort is stable, equal elements may be in any order.
        result = f"({statement})[0]" if name in ("sort dim 1", "topk dim 1", "median dim 1") else None
        yield Row(f"{name} {size}", statement, setup, result=result, size=size, group="order")


def _indexing(size: str) -> Iterator[Row]:
    lines, columns = matrix(size)
    table = f"a = torch.tensor(data{lines, columns})\nrng = np.random.default_rng(0)\n"
    mask = f"{table}m = a > 1"
    positions = f"{table}i = torch.tensor(rng.integers(0, {columns}, {lines, columns}))\n"
    slices = f"{table}i = torch.tensor(rng.integers(0, {lines}, {lines}))\n"
    zeros = f"z = torch.zeros{lines, columns}"
    for name, statement, setup in (
        ("gather", "a.gather(1, i)", positions),
        ("scatter_add_", "z.scatter_add_(1, i, a)", positions + zeros),
        ("index_add_", "z.index_add_(0, i, a)", slices + zeros),
        ("masked_select", "a[m]", mask),
        ("nonzero", "m.nonzero()", mask),
    ):
        yield Row(f"{name} {size}", statement, setup, rtol=1e-3, size=size, group="indexing")


def _tables(size: str) -> Iterator[Row]:
    """Yield rows of n / 64 look-ups of 64 columns in a table of 50,000 rows (for n = 16: 4 look-ups in a 4 x 4 table)."""
    n = SIZES[size]
    width, entries, bag = (4, 4, 2) if n == 16 else (64, 50_000, 8)
    setup = (
        f"F = torch.nn.functional; w = torch.tensor(data({entries}, {width}))\n"
        f"i = torch.tensor(np.random.default_rng(0).integers(0, {entries}, ({n // width // bag}, {bag})))\n"
    )
    for name in ("embedding", "embedding_bag"):
        yield Row(f"{name} {size}", f"F.{name}(i, w)", setup, size=size, group="indexing")
