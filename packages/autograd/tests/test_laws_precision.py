"""Law: derivatives in float32 of functions of one number have nearly the precision of float32, for arguments of any size.

A formula that subtracts nearly equal numbers has no digits left for large or for small arguments.
"""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core
from rushlight_autograd import grad
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import TYPED_ERRORS, operators

POINTS = np.concatenate([np.logspace(-6, 4, 161), -np.logspace(-6, 4, 161)]).astype(np.float32)
NEAR = 3e-5  # the largest relative distance from the derivative in float64
FAR = (1e-30, 1e30)  # derivatives beyond this range may be rounded to 0 or infinity

# Operators whose derivatives are computed from other results, as in PyTorch.
KNOWN = {
    "expm1": "result + 1 is 0 if the result is rounded to -1",
    "tanh": "1 - result ** 2 is 0 if the result is rounded to 1",
    "sigmoid": "1 - result is 0 if the result is rounded to 1",
    "special_i0e": "i1e - i0e is a difference of nearly equal numbers for large arguments",
    "special_i1e": "i0e - i1e is a difference of nearly equal numbers for large arguments",
    "special_scaled_modified_bessel_k0": "k0e - k1e is a difference of nearly equal numbers for large arguments",
    "special_scaled_modified_bessel_k1": "k1e - k0e is a difference of nearly equal numbers for large arguments",
}
OPS = [
    op
    for op in operators()
    if op.kind == "pointwise"
    and not op.is_inplace
    and sum(a.required for a in op.schema.arguments) == 1
    and hasattr(core._C, op.base)
]


def slopes(op: Op, dtype: core.dtype) -> np.ndarray | None:
    """Return the derivative at each point; None if there is no derivative in this dtype."""
    x = core.tensor(POINTS).to(dtype).requires_grad_()
    try:
        y = getattr(core._C, op.base)(x)
    except TYPED_ERRORS:
        return None
    if not y.requires_grad or y.dtype != dtype:
        return None
    (found,) = grad([y], [x], [core.ones_like(y)])
    return found.double().numpy()


def precise(op: Op) -> bool | None:
    found, wanted = slopes(op, core.float32), slopes(op, core.float64)
    if found is None or wanted is None:
        return None
    with np.errstate(invalid="ignore"):
        compared = np.isfinite(wanted) & (np.abs(wanted) > FAR[0]) & (np.abs(wanted) < FAR[1])
        return bool((np.abs(found - wanted) <= NEAR * np.abs(wanted))[compared].all())


@pytest.mark.parametrize("op", [op for op in OPS if op.name not in KNOWN], ids=lambda op: op.name)
def test_derivatives_keep_the_precision_of_float32(op: Op) -> None:
    found = precise(op)
    if found is None:
        pytest.skip("the operator has no derivative in float32")
    assert found


@pytest.mark.parametrize("op", [op for op in OPS if op.name in KNOWN], ids=lambda op: op.name)
def test_known_operators_lose_digits(op: Op) -> None:
    assert precise(op) is False, f"{op.name} is precise: remove it from KNOWN"


def test_all_known_operators_exist() -> None:
    assert {op.name for op in OPS} >= KNOWN.keys()
