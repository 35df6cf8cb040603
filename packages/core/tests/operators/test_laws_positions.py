"""Law: the result of a reduction does not depend on the position of an infinity or a NaN among the elements.

Kernels reduce elements one by one, in several accumulators, in blocks that are combined, and along rows. Each of these must
give a result of the same kind (finite, NaN, or an infinity of one sign) for every position. If the entry has an oracle, the
result must be of the same kind as the oracle's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import operators

OPS = [
    op
    for op in operators()
    if op.kind == "reduce"
    and "function" in op.variants
    and op.result not in ("int64", "truth")
    and "dim" in [a.name for a in op.schema.arguments]
    and len(op.schema.returns) == 1
]
# The parts of a product of complex numbers are infinite or NaN, depending on the order of the factors.
UNLIKE = {("prod", "complex64")}
VALUES = {
    "float32": (np.inf, -np.inf, np.nan),
    "complex64": (complex(np.inf, 1), complex(1, -np.inf), complex(np.inf, np.inf), complex(1, np.nan)),
}


def kind(value: Any) -> Any:
    """Return "finite", "nan", inf or -inf for each part of a number."""
    parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
    return tuple("nan" if p != p else p if np.isinf(p) else "finite" for p in parts)


def kinds(op: Op, column: Any) -> set[Any]:
    """Return the kinds of the results of one column that is reduced by each of the different loops."""
    n = len(column)
    wide = core.zeros(n, 37, dtype=column.dtype)
    wide[:] = column[:, None]
    function = getattr(core, op.name)
    ways = [
        function(column, 0),
        function(wide, 0)[0],
        function(wide, 0)[36],
        function(wide.t().contiguous(), 1)[0],
        function(wide[:, ::18], 0)[1],
        function(wide[:, 3], 0),
    ]
    return {kind(w.item()) for w in ways}


@pytest.mark.parametrize("dtype", list(VALUES))
@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_the_position_does_not_matter(op: Op, dtype: str) -> None:
    if (op.name, dtype) in UNLIKE:
        pytest.skip("the order of the factors matters")
    for n in (3, 70):
        column = core.arange(1, n + 1).to(getattr(core, dtype)) / n
        try:
            getattr(core, op.name)(column, 0)
        except NotImplementedError:
            pytest.skip(f"{op.name} does not take {dtype}")
        for value in VALUES[dtype]:
            found = set()
            for position in {0, 1, n // 2, n - 2, n - 1}:
                moved = column.clone()
                moved[position] = value
                found |= kinds(op, moved)
            assert len(found) == 1, f"{op.name} of {n} elements, one of which is {value}: {found}"
