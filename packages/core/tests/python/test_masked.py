"""Masked reductions and normalizations, compared with NumPy functions of the kept elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import rushlight_core as core
from rushlight_core import masked

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(3, 4, 5))
MASK = RNG.random((3, 4, 5)) > 0.4
MASK[0, 1] = False  # no element of this row is kept
MASK[:, :, 2] = False

REDUCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    # The NumPy function of the kept elements, and the result for no elements.
    "sum": (np.sum, 0.0),
    "prod": (np.prod, 1.0),
    "amax": (np.max, -np.inf),
    "amin": (np.min, np.inf),
    "mean": (np.mean, np.nan),
    "logsumexp": (scipy.special.logsumexp, -np.inf),
    "norm": (np.linalg.norm, 0.0),
}


def reduced(function: Callable[[Any], Any], of_none: float, dims: tuple[int, ...], mask: Any = MASK) -> Any:
    """Return `function` of the kept elements of each slice, and `of_none` for slices without kept elements."""
    rest = [d for d in range(VALUES.ndim) if d not in dims]
    out = np.empty([VALUES.shape[d] for d in rest])
    for position in np.ndindex(*out.shape):
        at: list[Any] = [slice(None)] * VALUES.ndim
        for d, i in zip(rest, position, strict=True):
            at[d] = i
        kept = VALUES[tuple(at)][np.broadcast_to(mask, VALUES.shape)[tuple(at)]]
        out[position] = function(kept) if kept.size else of_none
    return out


def tensors(mask: Any = MASK) -> tuple[core.Tensor, core.Tensor]:
    return core.tensor(VALUES), core.tensor(mask)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [0, -1, (0, 2), None])
def test_reductions(name: str, dim: Any) -> None:
    dims = (0, 1, 2) if dim is None else tuple(d % 3 for d in (dim if isinstance(dim, tuple) else (dim,)))
    x, mask = tensors()
    found = getattr(masked, name)(x, dim=dim, mask=mask)
    np.testing.assert_allclose(found.numpy(), reduced(*REDUCTIONS[name], dims), rtol=1e-12)
    kept = getattr(masked, name)(x, dim=dim, mask=mask, keepdim=True)
    assert kept.shape == tuple(1 if d in dims else n for d, n in enumerate(VALUES.shape))
    whole = getattr(masked, name)(x, dim=dim)
    np.testing.assert_allclose(whole.numpy(), reduced(REDUCTIONS[name][0], 0, dims, True), rtol=1e-12)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_variances(name: str, correction: float) -> None:
    x, mask = tensors()

    def reference(kept: Any) -> float:
        over = kept.size - correction
        value = ((kept - kept.mean()) ** 2).sum() / over if over > 0 else np.nan
        return float(value if name == "var" else np.sqrt(value))

    found = getattr(masked, name)(x, 2, correction=correction, mask=mask)
    np.testing.assert_allclose(found.numpy(), reduced(reference, np.nan, (2,)), rtol=1e-12)
    np.testing.assert_array_equal(
        getattr(masked, name)(x, 2, False, mask=mask).numpy(),
        getattr(masked, name)(x, 2, correction=0, mask=mask).numpy(),
    )
    with pytest.raises(AssertionError, match="got both"):
        getattr(masked, name)(x, 2, True, correction=1)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices(name: str) -> None:
    x, mask = tensors()
    filled = np.where(MASK, VALUES, -np.inf if name == "argmax" else np.inf)
    function = getattr(masked, name)
    found = function(x, 1, mask=mask, dtype=core.int64)
    np.testing.assert_array_equal(found.numpy(), getattr(filled, name)(1))
    assert function(x, mask=mask, dtype=core.int64).item() == getattr(filled, name)()
    assert function(x, 1, keepdim=True, mask=mask).shape == (3, 1, 5)
    assert function(x, 1, mask=mask).dtype == x.dtype  # as in PyTorch


def test_an_index_is_never_that_of_an_element_left_out() -> None:
    zeros = core.zeros(3, dtype=core.uint8)
    keep = core.tensor([False, True, True])
    assert masked.argmax(zeros, mask=keep).item() == 1  # the element that is left out is filled with 0
    assert masked.argmin(zeros + 255, 0, mask=keep).item() == 1
    infinite = core.tensor([1.0, -core.inf])
    assert masked.argmax(infinite, mask=core.tensor([False, True])).item() == 1
    assert masked.argmax(core.tensor([5.0, core.nan, 7.0]), mask=keep).item() == 1


def test_median() -> None:
    x, mask = tensors()

    def lower(kept: Any) -> float:
        return float(np.sort(kept)[(kept.size - 1) // 2])

    np.testing.assert_array_equal(masked.median(x, mask=mask).numpy(), reduced(lower, np.nan, (2,)))
    assert masked.median(x, 1, keepdim=True, mask=mask).shape == (3, 1, 5)
    large = core.tensor([[2**60 + 1, 7, 2**60 + 3]])  # these numbers are equal in float32
    assert masked.median(large, mask=core.tensor([True, False, True])).tolist() == [2**60 + 1]
    with pytest.raises(ValueError, match="all elements of a slice"):
        masked.median(large, mask=core.tensor([False]))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"])
def test_normalizations_and_cumulative_functions(name: str) -> None:
    x, mask = tensors()
    with np.errstate(divide="ignore", invalid="ignore"):
        sign = -1 if name == "softmin" else 1
        powers = np.where(MASK, np.exp(sign * VALUES), 0)
        shares = powers / powers.sum(1, keepdims=True)
        kept = np.where(MASK, VALUES, 0)
        wanted = {
            "softmax": shares,
            "softmin": shares,
            "log_softmax": np.log(shares),
            "normalize": kept / np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-12),
            "cumsum": kept.cumsum(1),
            "cumprod": np.where(MASK, VALUES, 1).cumprod(1),
        }[name]
    order = (2.0,) if name == "normalize" else ()
    found = getattr(masked, name)(x, *order, 1, mask=mask)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10)


def test_logaddexp() -> None:
    x, mask = tensors()
    found = masked.logaddexp(x, x + 1, input_mask=mask, other_mask=~mask)
    np.testing.assert_allclose(found.numpy(), np.where(MASK, VALUES, VALUES + 1), rtol=1e-12)


def test_norms_of_other_orders() -> None:
    x, mask = tensors()
    for order, of_none in ((1, 0), (3.0, 0), (np.inf, 0), (-np.inf, np.inf)):
        wanted = reduced(lambda kept, p=order: np.linalg.norm(kept, p), of_none, (2,))  # type: ignore[misc]
        np.testing.assert_allclose(masked.norm(x, order, 2, mask=mask).numpy(), wanted, rtol=1e-12)
    z = core.complex(x, x)
    assert masked.norm(z, mask=mask).dtype == core.float64
    np.testing.assert_allclose(masked.normalize(z, 2.0, 1).abs().square().sum(1).numpy(), np.ones((3, 5)))


def test_dtypes() -> None:
    small = core.tensor([[1, 2, 3]], dtype=core.uint8)
    keep = core.tensor([True, False, True])
    assert masked.sum(small, mask=keep).dtype == masked.prod(small, mask=keep).dtype == core.int64
    assert masked.sum(small, dtype=core.float32, mask=keep).item() == 4.0
    assert masked.amax(small, mask=keep).dtype == core.uint8
    assert masked.amax(small, mask=core.tensor([False])).item() == 0
    assert masked.amin(small, mask=core.tensor([False])).item() == 255
    assert masked.cumsum(small, 1, mask=keep).dtype == core.uint8
    assert masked.cumsum(keep, 0).tolist() == [1, 1, 2]
    assert masked.cumprod(keep, 0, mask=keep).tolist() == [1, 1, 1]
    assert masked.var(small, mask=keep).dtype == core.float32
    assert masked.median(small, mask=keep).dtype == core.uint8
    assert masked.mean(small, dtype=core.float64, mask=keep).tolist() == 2.0
    with pytest.raises(ValueError, match=r"mean\(dtype\).*int"):
        masked.mean(small, mask=keep)


def test_what_masks_may_be() -> None:
    x, _ = tensors()
    row = MASK[0, 0]
    np.testing.assert_allclose(
        masked.sum(x, 2, mask=core.tensor(row)).numpy(), reduced(np.sum, 0, (2,), row), rtol=1e-12
    )
    np.testing.assert_array_equal(
        masked.sum(x, mask=core.tensor(row).float()).numpy(), masked.sum(x, mask=core.tensor(row)).numpy()
    )
    with pytest.raises(IndexError, match=r"sum\(mask\): got 4 dimensions"):
        masked.sum(x, mask=core.ones(1, 3, 4, 5, dtype=core.bool))
    for name, arguments in {
        "sum": (),
        "mean": (1,),
        "var": (1,),
        "argmax": (1,),
        "normalize": (2.0, 1),
    }.items():
        with pytest.raises(RuntimeError, match=rf"^{name}\(mask\): must broadcast .*\(3, 4, 5\), got \(4,\)"):
            getattr(masked, name)(x, *arguments, mask=core.ones(4, dtype=core.bool))
    with pytest.raises(IndexError, match=r"^mean\(dim\)"):
        masked.mean(x, 7)
    with pytest.raises(TypeError, match=r"sum\(mask\): needs a tensor, got list"):
        masked.sum(x, mask=[True])  # type: ignore[arg-type]
    with pytest.raises(IndexError, match=r"amax\(dim\)"):
        masked.amax(x, 3)
    with pytest.raises(RuntimeError, match=r"sum\(dim\).*once"):
        masked.sum(x, (0, -3))


def test_a_tensor_without_dimensions() -> None:
    x, out = core.tensor(3.0), core.tensor(False)
    assert masked.sum(x, 0).item() == 3
    assert masked.sum(x, mask=out).item() == 0
    assert masked.mean(x, mask=out).isnan().item()
    assert masked.argmax(x, mask=out).item() == 0
    assert masked.median(core.tensor(7), 0).item() == 7
