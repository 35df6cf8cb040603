"""Law: an operator with a sparse argument raises an error, or gives the values that it gives for the dense tensor.

The samples of every operator are called with each tensor argument in turn in a sparse layout, and with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import rushlight_core as core
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
    map_tensors,
    operators,
    tensors_in,
)

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "coo": lambda t: t.to_sparse(),
    "hybrid": lambda t: t.to_sparse(1),
    "csr": lambda t: t.to_sparse_csr(),
    "bsc": lambda t: t.to_sparse_bsc((1, 1)),
}
# The values of these operators differ: softmax treats elements without a value as absent, division does not compute 0 / 0,
# and signbit does not see zeros with a sign.
OTHER_VALUES = ("softmax", "log_softmax", "div", "signbit")
# These operators return or create the parts of sparse tensors.
OF_PARTS = ("_sparse_values", "_with_sparse_values", "_sparse_mask_values")
OPS = [op for op in operators() if op.samples and op.base not in OF_PARTS]


def with_zeros(t: Any) -> Any:
    """Return a copy of `t` in which every third element is zero."""
    if not (t.dtype.is_floating_point or t.dtype.is_complex) or t.dim() == 0:
        return t
    keep = core.arange(t.numel()).reshape(t.shape) % 3 != 0
    return core.where(keep, t, core.zeros((), dtype=t.dtype))


def may_be_sparse(t: Any, layout: str) -> bool:
    return t.dim() == 2 if layout in ("csr", "bsc") else t.dim() > (layout == "hybrid")


def sparse_variants(sample: Sample, layout: str) -> Iterator[Sample]:
    """Yield the sample with one tensor in the layout, for each tensor, and with all tensors in the layout."""
    tensors = [may_be_sparse(t, layout) for t in tensors_in(sample)]
    choices = [{i} for i, fits in enumerate(tensors) if fits]
    if len(choices) > 1:
        choices.append({i for i, fits in enumerate(tensors) if fits})
    for chosen in choices:
        yield converted(sample, layout, chosen)


def converted(sample: Sample, layout: str, chosen: set[int]) -> Sample:
    number = count()
    return map_tensors(lambda t: LAYOUTS[layout](t) if next(number) in chosen else t.clone(), sample)


def dense(value: Any) -> Any:
    return value.to_dense() if isinstance(value, core.Tensor) else value


def check(op: Op, run: Callable[[Op, Sample], Any], sample: Sample, layout: str) -> None:
    try:
        expected = run(op, map_tensors(core.clone, sample))
    except TYPED_ERRORS:
        return
    for variant in sparse_variants(sample, layout):
        try:
            results = run(op, variant)
        except TYPED_ERRORS:
            continue
        compare(op, results, expected, f"{op.name} of {sample.text}, layout {layout}")


def compare(op: Op, results: Any, expected: Any, text: str) -> None:
    for ours, wanted in zip(flat(results), flat(expected), strict=True):
        if not isinstance(wanted, core.Tensor):
            assert ours == wanted, text
            continue
        assert ours.shape == wanted.shape, text
        assert ours.dtype == wanted.dtype, text
        if not is_random(op) and "empty" not in op.name and op.base not in OTHER_VALUES:
            assert_same(dense(ours), wanted, text)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_sparse_arguments(op: Op, layout: str) -> None:
    for sample in all_samples(op):
        zeroed = map_tensors(with_zeros, sample)
        check(op, call, zeroed, layout)
        if "inplace" in op.variants:
            check(op, inplace, zeroed, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", [op for op in OPS if "out" in op.variants], ids=lambda op: op.name)
def test_sparse_out(op: Op, layout: str) -> None:
    for sample in all_samples(op):
        try:
            expected = call(op, sample)
        except TYPED_ERRORS:
            continue
        if not all(isinstance(t, core.Tensor) and may_be_sparse(t, layout) for t in flat(expected)):
            continue
        for variant in (sample, *sparse_variants(sample, layout)):
            out = map_tensors(LAYOUTS[layout], tuple(expected) if isinstance(expected, tuple) else expected)
            try:
                results = call(op, variant, out=out)
            except TYPED_ERRORS:
                continue
            compare(op, results, expected, f"{op.name} of {variant.text}, out of layout {layout}")
