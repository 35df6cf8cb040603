"""Law: a mask has the same meaning in every operator that takes masks, for every number of dimensions.

A mask that broadcasts gives the same result as the expanded mask, and a mask among indices selects the same elements as in
NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
import rushlight_core._C as _C
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    assert_same,
    call,
    flat,
    inplace,
    is_random,
    operators,
)
from rushlight_testing.samples import arguments_of

MASKS = ("mask", "condition", "attn_mask")


def mask_of(op: Op) -> str | None:
    """Return the name of the operator's mask argument."""
    names = [a.name for a in op.schema.arguments if a.type.name in ("Tensor", "Tensor?")]
    return next((name for name in MASKS if name in names), None)


OPS = [op for op in operators() if op.samples and mask_of(op) and not is_random(op)]
# Operators whose result has a row for each dimension of the mask.
COORDINATES = ("where.indices",)


def forms(op: Op) -> Iterator[Callable[[Op, Sample], Any]]:
    yield call
    if "inplace" in op.variants:
        yield inplace


def with_mask(op: Op, sample: Sample, mask: Any) -> Sample:
    bound = arguments_of(op, sample)
    bound[mask_of(op)] = mask
    positional = [a.name for a in op.schema.arguments if not a.keyword_only]
    args = tuple(bound.pop(name) for name in positional)
    return replace(sample, args=args, kwargs=bound)


def widens(mask: Any, input: Any) -> bool:
    """Return whether the result has the shape of the mask rather than of the input."""
    if input is None:
        return False
    shape = tuple(input.shape) if isinstance(input, core.Tensor) else ()
    return np.broadcast_shapes(tuple(mask.shape), shape) != shape


def results(form: Callable[[Op, Sample], Any], op: Op, sample: Sample) -> list[Any] | Exception:
    try:
        return flat(form(op, sample))
    except TYPED_ERRORS as error:
        return error


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS if op.name not in COORDINATES])
@pytest.mark.parametrize("chosen", [True, False])
def test_a_mask_of_one_value_is_a_number(op: Op, chosen: bool) -> None:
    public = "hidden" not in op.variants
    compared = False
    for form in forms(op):
        for i, sample in enumerate(all_samples(op)):
            bound = arguments_of(op, sample)
            given = bound[mask_of(op)]
            if given is None or given.dtype != core.bool or widens(given, bound.get("input")):
                continue
            wanted = results(form, op, with_mask(op, sample, core.full(given.shape, chosen)))
            assert isinstance(wanted, list), f"{op.name}({sample.text}): {wanted}"
            for shape in ((), (1,)):
                fresh = list(all_samples(op))[i]
                got = results(form, op, with_mask(op, fresh, core.full(shape, chosen)))
                if not public and not isinstance(got, list):
                    continue  # a hidden operator may require the mask in its full shape
                text = f"{op.name}({sample.text}) with a mask of shape {shape}"
                assert isinstance(got, list), f"{text}: {got}"
                for a, b in zip(got, wanted, strict=True):
                    assert_same(a, b, text)
                compared = True
    assert compared or not public, f"{op.name}: no sample has a mask of bools"


X = np.arange(24.0).reshape(2, 3, 4)


def indices_with_masks() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield masks with every possible number of dimensions, alone and together with other indices."""
    for chosen in (True, False):
        yield f"{chosen}", (np.array(chosen),)
        yield f"{chosen}, numbers", (np.array(chosen), np.array([1]))
        yield f"numbers, {chosen}", (np.array([1]), np.array(chosen))
        yield f":, {chosen}", (slice(None), np.array(chosen))
        yield f"{chosen}, {chosen}", (np.array(chosen), np.array(chosen))
        for dims in (1, 2, 3):
            yield f"{dims} dimensions of {chosen}", (np.full(X.shape[:dims], chosen),)
        yield f":, a row of {chosen}", (slice(None), np.full(3, chosen))
    for dims in (1, 2, 3):
        some = np.arange(np.prod(X.shape[:dims])).reshape(X.shape[:dims]) % 2 == 1
        yield f"some of {dims} dimensions", (some,)
    yield "some of the middle", (slice(None), np.array([True, False, True]))


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
@pytest.mark.parametrize("index", [pytest.param(index, id=text) for text, index in indices_with_masks()])
def test_masks_among_indices(index: tuple[Any, ...], dtype: str) -> None:
    def ours(i: Any) -> Any:
        if not isinstance(i, np.ndarray):
            return i
        t = core.tensor(i)
        return t.to(getattr(core, dtype)) if i.dtype == bool else t

    mine = tuple(map(ours, index))
    listed = [None if isinstance(i, slice) else i for i in mine]
    chosen = X[index]
    written, added = X.copy(), X.copy()
    written[index] = -1
    np.add.at(added, index, -1)

    np.testing.assert_array_equal(core.tensor(X)[mine].numpy(), chosen)
    np.testing.assert_array_equal(_C._call_boxed("index", core.tensor(X), listed).numpy(), chosen)
    t = core.tensor(X)
    t[mine] = -1
    np.testing.assert_array_equal(t.numpy(), written)
    for accumulate, wanted in ((False, written), (True, added)):
        value = core.tensor(-1.0, dtype=core.float64)
        put = core.tensor(X).index_put(listed, value, accumulate=accumulate)
        np.testing.assert_array_equal(put.numpy(), wanted)
        t = core.tensor(X)
        assert t.index_put_(listed, value, accumulate=accumulate) is t
        np.testing.assert_array_equal(t.numpy(), wanted)
