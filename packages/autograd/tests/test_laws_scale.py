"""Law: if a result is proportional to an argument, its gradient does not depend on the scale of the argument.

This applies to norms, standard deviations, singular values and linear operators. A formula that squares elements may
overflow in float32 although the result is in the range.
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
FAR = (2.0**80, 2.0**-80)  # factors whose squares overflow or underflow in float32

# Norms of orders other than 1, 2 and infinity: their sums of powers overflow, as in PyTorch.
KNOWN = {"linalg_vector_norm", "linalg_norm", "norm"}


def gradient(op: Op, sample: Any, factor: float, dtype: Any) -> Any:
    """Return the results and the gradient of the first tensor, scaled by `factor`; None if there is no gradient."""
    leaves: list[Any] = []

    def leaf(t: Any) -> Any:
        if not t.is_floating_point():
            return t
        made = t.detach().to(dtype) * (1.0 if leaves else factor)
        leaves.append(made.requires_grad_())
        return made

    results = [t for t in flat(call(op, map_tensors(leaf, sample))) if isinstance(t, core.Tensor)]
    if not results or not all(t.requires_grad and t.is_floating_point() for t in results):
        return None
    from_loss = [(core.arange(t.numel()) * 37 % 128 / 128 + 1).reshape(t.shape).to(t.dtype) for t in results]
    (found,) = grad(results, leaves[:1], from_loss, allow_unused=True)
    if found is None:
        return None
    return [t.detach().double().numpy() for t in results], found.double().numpy()


def is_proportional(exact: Any, others: list[tuple[float, Any]]) -> bool:
    return all(
        other is not None
        and all(
            np.allclose(a * factor, b, rtol=1e-9, atol=0) for a, b in zip(exact[0], other[0], strict=True)
        )
        and np.allclose(exact[1], other[1], rtol=1e-9, atol=1e-9)
        for factor, other in others
    )


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_gradients_do_not_depend_on_the_scale(op: Op) -> None:
    apart = []
    for sample in samples_of_dtype(op, "float32"):
        try:
            exact = gradient(op, sample, 1.0, core.float64)
            if exact is None or not np.isfinite(exact[1]).all():
                continue
            others = [(factor, gradient(op, sample, factor, core.float64)) for factor in (2.0, *FAR)]
            if not is_proportional(exact, others):
                continue
            found = [gradient(op, sample, factor, core.float32)[1] for factor in FAR]
        except TYPED_ERRORS:
            continue
        largest = np.abs(exact[1]).max(initial=1e-30)
        if not all(np.allclose(exact[1], one, rtol=1e-3, atol=1e-3 * largest) for one in found):
            apart.append(sample.text)
    assert bool(apart) == (op.name in KNOWN), apart
