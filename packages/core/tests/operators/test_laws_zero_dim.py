"""Law: 0-d tensors give the same results as tensors of one element, and empty tensors give the declared results.

Each sample is called with every tensor of shape (1,) and of shape (), and with sizes of 0 and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    call,
    flat,
    is_random,
    operators,
    to_numpy,
)
from rushlight_testing.variants import one_element

OPS = [op for op in operators() if op.samples and not is_random(op)]
DTYPES = ("float32", "int64")

# Operators that, as in PyTorch, need a dimension: at least one sample works for one element and raises for 0-d tensors.
NEEDS_A_DIMENSION = {
    "_class_weight_gradient",
    "_cross_entropy",
    "_fft_c2c",
    "_fft_c2r_backward",
    "_fft_r2c",
    "_fft_r2c_backward",
    "_index",
    "_pad",
    "_resample",
    "_resample_backward",
    "_searchsorted",
    "_tensordot",
    "_unique",
    "_unique_rows",
    "addr",
    "bincount",
    "bucketize",
    "bucketize.number",
    "cartesian_prod",
    "cat",
    "chunk",
    "combinations",
    "concat",
    "concatenate",
    "constant_pad_nd",
    "cross_entropy_loss",
    "cumulative_trapezoid",
    "cumulative_trapezoid.x",
    "diag",
    "diag_embed",
    "diff",
    "dot",
    "einsum",
    "fft_fft",
    "fft_fft2",
    "fft_fftn",
    "fft_fftshift",
    "fft_hfft",
    "fft_ifft",
    "fft_ifft2",
    "fft_ifftn",
    "fft_ifftshift",
    "fft_ihfft",
    "fft_ihfftn",
    "fft_irfft",
    "fft_rfft",
    "fft_rfft2",
    "fft_rfftn",
    "flipud",
    "hsplit.indices",
    "index",
    "index_put",
    "linalg_multi_dot",
    "linalg_norm",
    "linalg_tensorinv",
    "linalg_tensorsolve",
    "linear",
    "matmul",
    "nll_loss",
    "outer",
    "permute",
    "permute_copy",
    "repeat_interleave.repeats",
    "repeat_interleave.tensor",
    "roll",
    "searchsorted",
    "searchsorted.number",
    "select",
    "slice",
    "slice_copy",
    "slice_scatter",
    "split",
    "split_copy",
    "sum_to_size",
    "tensor_split",
    "tensor_split.indices",
    "trapezoid",
    "trapezoid.x",
    "unbind",
    "unbind_copy",
    "unsafe_chunk",
    "unsafe_split",
    "vander",
    "vdot",
    "view.dtype",
    "view_copy.dtype",
}

# Operators whose result has a coordinate for each dimension of the input. An element of a 0-d tensor has no coordinates.
COORDINATES = ("nonzero", "nonzero.as_tuple", "nonzero_static", "argwhere", "where.indices")

# Samples with a different result: as in PyTorch, the 0 largest elements of a 0-d tensor are the tensor itself.
OTHERWISE = {("topk", "t(3, 4), 0"), ("topk", "t(), 0")}


def attempt(op: Op, sample: Sample) -> Any:
    """Return the results in a list, or the error."""
    try:
        return flat(call(op, sample))
    except TYPED_ERRORS as error:
        return error


def check(op: Op, text: str, got: list[Any], wanted: list[Any]) -> None:
    """Check that numbers and dtypes are equal. Shapes may differ by dimensions of size 1."""
    assert len(got) == len(wanted), (
        f"{op.name}({text}): {len(got)} results without dimensions, not {len(wanted)}"
    )
    for a, b in zip(got, wanted, strict=True):
        if not isinstance(a, core.Tensor) or not isinstance(b, core.Tensor):
            assert type(a) is type(b), f"{op.name}({text})"
            assert a == b or a != a, f"{op.name}({text}): {a}, not {b}"
            continue
        assert a.dtype == b.dtype, f"{op.name}({text}): {a.dtype} without dimensions, not {b.dtype}"
        x, y = to_numpy(a, wide=True), to_numpy(b, wide=True)
        assert x.size == y.size, f"{op.name}({text}): {x.shape} without dimensions, not {y.shape}"
        np.testing.assert_allclose(
            x.ravel(), y.ravel(), rtol=1e-6, equal_nan=True, err_msg=f"{op.name}({text})"
        )


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_no_dimension_is_one_element(op: Op) -> None:
    refused = False
    for dtype in DTYPES:
        for sample, again in zip(all_samples(op, dtype), all_samples(op, dtype), strict=True):
            wanted = attempt(op, one_element(op, sample, 1))
            got = attempt(op, one_element(op, again, 0))
            if (op.name, sample.text) in OTHERWISE:
                continue
            if isinstance(wanted, list) and isinstance(got, list) and op.name not in COORDINATES:
                check(op, sample.text, got, wanted)
            elif isinstance(wanted, list) and not isinstance(got, list):
                refused = True
                assert op.name in NEEDS_A_DIMENSION, f"{op.name}({sample.text}) without dimensions: {got}"
    assert refused or op.name not in NEEDS_A_DIMENSION, f"{op.name} needs no dimension: strike it out"


def test_a_wrong_result_is_noticed() -> None:
    op = next(op for op in OPS if op.name == "sum")
    check(op, "made here", [core.tensor(1.0)], [core.ones(1)])
    for wrong in ([core.tensor(2.0)], [core.zeros(0)], [core.tensor(1)], [], [core.tensor(float("nan"))]):
        with pytest.raises(AssertionError):
            check(op, "made here", wrong, [core.ones(1)])
