"""Law: the gradient of an operator that copies elements is rounded once in half precision.

The results of views, copies and selections are elements of the arguments. If several results are copies of one
element, their gradients are added in float32.
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


def gradients(op: Op, sample: Any, from_loss: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the sample's tensors, the results and the gradients."""
    leaves: list[Any] = []

    def leaf(t: Any) -> Any:
        if t.is_floating_point():
            leaves.append(t.detach().clone().requires_grad_())
            return leaves[-1]
        return t

    results = [t for t in flat(call(op, map_tensors(leaf, sample))) if isinstance(t, core.Tensor)]
    results = [t for t in results if t.requires_grad]
    if not results:
        return leaves, [], []
    found = grad(results, leaves, [from_loss(t) for t in results], allow_unused=True)
    return leaves, results, [g for g in found if g is not None]


def elements(tensors: list[Any]) -> set[float]:
    return {value for t in tensors for value in t.detach().double().reshape(-1).tolist()}


def uneven(t: Any) -> Any:
    """Return numbers between 1 and 2, few sums of which can be represented in bfloat16."""
    return (core.arange(t.numel(), dtype=core.float64) * 37 % 128 / 128 + 1).reshape(t.shape).to(t.dtype)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_what_is_added_up_is_rounded_once(op: Op) -> None:
    for sample in samples_of_dtype(op, "bfloat16"):
        wide = map_tensors(lambda t: t.double() if t.is_floating_point() else t, sample)
        try:
            leaves, results, exact = gradients(op, wide, uneven)
            _, _, counts = gradients(op, wide, core.ones_like)
            _, _, found = gradients(op, sample, uneven)
        except TYPED_ERRORS:
            continue
        copies = elements(results) <= elements(leaves) | {0.0} and elements(counts) <= set(range(100))
        if not copies or len(found) != len(exact):
            continue
        for mine, other in zip(found, exact, strict=True):
            assert np.array_equal(mine.double().numpy(), other.to(mine.dtype).double().numpy()), sample.text
