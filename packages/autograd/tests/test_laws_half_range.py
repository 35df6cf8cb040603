"""Law: if a gradient can be represented in its dtype, no intermediate result of its formula overflows.

Each sample of an operator is called with small elements in float16, and in float64 for comparison. The incoming
gradient is small, too, like the gradient of a mean, so a formula that first multiplies large derivatives overflows.
Pointwise operators are also called at the ends of the range of each dtype, where squares and multiples overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_autograd import grad
from rushlight_core.codegen.model import Op
from rushlight_testing.dtypes import samples_of_dtype
from rushlight_testing.operators import TYPED_ERRORS, call, flat, is_random, map_tensors, operators

OPS = [
    op
    for op in operators()
    if op.samples
    and "hidden" not in op.variants
    and not (is_random(op) or op.is_inplace or op.base[0] == "_")
]
FACTOR = 2.0**-6  # the elements of samples are multiplied by it
FROM_LOSS = 2.0**-8

# Operators that overflow: they compute a term of the derivative that overflows in float16 before they multiply it.
KNOWN = {
    "pow", "digamma", "polygamma", "special_zeta", "special_bessel_y1", "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k1",
}  # fmt: skip


# Numbers whose multiples, or whose squares, overflow in each dtype.
FAR = {
    "float16": (60000.0, -60000.0, 1000.0, -1000.0),
    "bfloat16": (3e38, -3e38, 1e25, -1e25),
    "float32": (3e38, -3e38, 1e25, -1e25),
}
KNOWN_FAR: set[str] = set()


def gradients(op: Op, sample: Any) -> list[Any]:
    """Return the gradients of a sample's tensors; an empty list if the results are not finite."""
    leaves: list[Any] = []

    def leaf(t: Any) -> Any:
        if not t.is_floating_point():
            return t
        leaves.append(t.detach().clone().requires_grad_())
        return leaves[-1]

    results = [t for t in flat(call(op, map_tensors(leaf, sample))) if isinstance(t, core.Tensor)]
    results = [t for t in results if t.requires_grad]
    if not results or not all(t.isfinite().all() for t in results):
        return []
    from_loss = [core.full(t.shape, FROM_LOSS, dtype=t.dtype) for t in results]
    return list(grad(results, leaves, from_loss, allow_unused=True))


def overflows(mine: Any, exact: Any, dtype: str = "float16") -> bool:
    """Return whether a gradient in `dtype` is not finite although the float64 gradient is well within its range."""
    if mine is None or exact is None or mine.dtype != getattr(core, dtype):
        return False
    got, want = mine.double().numpy(), exact.double().numpy()
    return bool((~np.isfinite(got) & (np.abs(want) < core.finfo(mine.dtype).max / 4)).any())


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_no_gradient_overflows(op: Op) -> None:
    found = []
    for sample in samples_of_dtype(op, "float16"):
        small = map_tensors(lambda t: t * FACTOR if t.dtype == core.float16 else t, sample)
        wide = map_tensors(lambda t: t.double() if t.dtype == core.float16 else t, small)
        try:
            exact, mine = gradients(op, wide), gradients(op, small)
        except TYPED_ERRORS:
            continue
        if len(mine) == len(exact) and any(overflows(*pair) for pair in zip(mine, exact, strict=True)):
            found.append(sample.text)
    assert bool(found) == (op.name in KNOWN), found


@pytest.mark.parametrize("op", [op for op in OPS if op.kind == "pointwise"], ids=lambda op: op.name)
def test_no_gradient_overflows_far_from_zero(op: Op) -> None:
    found = []
    for dtype, values in FAR.items():
        there = core.tensor(values, dtype=getattr(core, dtype))

        def moved(t: Any, there: Any = there) -> Any:
            if t.dtype != there.dtype:
                return t
            return there.repeat(-(-t.numel() // len(there)))[: t.numel()].reshape(t.shape)

        for sample in samples_of_dtype(op, dtype):
            far = map_tensors(moved, sample)
            wide = map_tensors(lambda t, there=there: t.double() if t.dtype == there.dtype else t, far)
            try:
                exact, mine = gradients(op, wide), gradients(op, far)
            except TYPED_ERRORS:
                continue
            if len(mine) == len(exact) and any(
                overflows(*pair, dtype) for pair in zip(mine, exact, strict=True)
            ):
                found.append((dtype, sample.text))
    assert bool(found) == (op.name in KNOWN_FAR), found
