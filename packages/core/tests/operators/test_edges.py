"""Unusual arguments of operators: 0-d tensors as numbers, None as a default, and numbers that do not fit a dtype."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import all_samples, assert_same, call, is_random, operators
from rushlight_testing.samples import arguments_of

NUMBERS = ("int", "int?", "float", "float?")
# Operators that have another overload with a tensor in place of the number.
TAKES_A_TENSOR = {"max.dim", "min.dim", "quantile", "nanquantile"}


def ops_with(condition: Callable[[Op], Any]) -> list[Any]:
    """Return parameters of a test for all public operators for which `condition` is true."""
    visible = [op for op in operators() if "hidden" not in op.variants and not op.is_inplace]
    return [pytest.param(op, id=op.name) for op in visible if condition(op)]


def _with_tensors(op: Op, sample: Sample) -> Sample | None:
    """Return the sample with a 0-d tensor in place of each int and float argument, or None if it has no such argument."""
    kinds = {a.name: a.type.name for a in op.schema.arguments}
    bound = arguments_of(op, sample)
    positional = [a.name for a in op.schema.arguments if not a.keyword_only]
    if any(a.varargs for a in op.schema.arguments):
        return None
    found = False

    def replaced(name: str, value: Any) -> Any:
        nonlocal found
        if kinds[name] not in NUMBERS or isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        found = True
        whole = kinds[name].startswith("int")
        return core.tensor(value, dtype=core.int64 if whole else core.float64)

    args = tuple(replaced(name, bound[name]) for name, _ in zip(positional, sample.args, strict=False))
    kwargs = {k: replaced(op.aliases.get(k, k), v) for k, v in sample.kwargs.items()}
    return Sample(sample.text, args, kwargs) if found else None


@pytest.mark.parametrize(
    "op",
    ops_with(
        lambda op: (
            op.samples
            and not is_random(op)
            and op.name not in TAKES_A_TENSOR
            and any(a.type.name in NUMBERS for a in op.schema.arguments)
        )
    ),
)
def test_a_tensor_without_dimensions_counts_as_its_number(op: Op) -> None:
    """A 0-d tensor gives the same result as the int or the float that it holds."""
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        given = _with_tensors(op, again)
        if given is not None:
            assert_same(call(op, given), call(op, sample), f"{op.name}({sample.text})")


def test_tensors_that_are_no_numbers() -> None:
    """Arguments for numbers refuse tensors with dimensions, fractions for ints, gradients and complex values."""
    x = core.ones(3)
    for bad in (core.tensor([0]), core.tensor(0.0), core.tensor(True)):
        with pytest.raises(TypeError, match="must be int"):
            core.unsqueeze(x, bad)
    for bad in (core.tensor([1e-3]), core.tensor(1j)):
        with pytest.raises(TypeError, match="must be float"):
            core.allclose(x, x, atol=bad)


@pytest.mark.parametrize("op", ops_with(lambda op: op.none_is_default))
def test_none_stands_for_the_default(op: Op) -> None:
    """Passing None, by position or by name, has the same effect as leaving the argument out."""
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        kwargs = {k: v for k, v in sample.kwargs.items() if v is not None}
        names = [a.name for a in op.schema.arguments if not a.keyword_only][: len(sample.args)]
        nones = {name: None for name in op.none_is_default if name not in (*names, *kwargs)}
        assert_same(
            call(op, Sample(again.text, again.args, {**kwargs, **nones})),
            call(op, Sample(sample.text, sample.args, kwargs)),
            f"{op.name}({sample.text})",
        )


def _takes_integers_one_by_one(op: Op) -> bool:
    """Return whether an operator has such an argument, and no overload without it, as `squeeze` has."""
    at = next((i for i, a in enumerate(op.schema.arguments) if a.varargs and a.type.name == "int[]"), None)
    others = [one for one in operators() if one.base == op.base and one is not op]
    return at is not None and all(sum(a.required for a in one.schema.arguments) > at for one in others)


@pytest.mark.parametrize(
    "op", [pytest.param(op, id=op.name) for op in operators() if _takes_integers_one_by_one(op)]
)
def test_integers_that_are_given_one_by_one_are_required(op: Op) -> None:
    """A call without these integers raises TypeError, as for any missing argument; an empty list is accepted."""
    at = next(i for i, a in enumerate(op.schema.arguments) if a.varargs)
    namespaces = {"function": core, "method": core.Tensor}
    for sample in all_samples(op):
        before = sample.args[:at]
        for variant in namespaces.keys() & set(op.variants):
            function = getattr(namespaces[variant], op.base)
            with pytest.raises(TypeError, match=r"missing argument|no signature fits"):
                function(*before)
            with contextlib.suppress(RuntimeError, ValueError):  # an empty list may be invalid
                function(*before, ())


def _makes_tensors(op: Op) -> bool:
    names = {a.name for a in op.schema.arguments}
    return bool(op.samples) and "out" in op.variants and {"dtype", "device", "requires_grad"} <= names


@pytest.mark.parametrize("wanted", ["float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("op", ops_with(_makes_tensors))
def test_out_says_the_dtype_of_what_makes_tensors(op: Op, wanted: str) -> None:
    """With out= and without dtype, functions that create tensors behave as if the dtype of out were given."""
    dtype = getattr(core, wanted)
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        kwargs = {name: value for name, value in sample.kwargs.items() if name != "dtype"}
        out = core.empty(0, dtype=dtype)
        core.manual_seed(0)
        try:
            made = call(op, Sample(sample.text, sample.args, {**kwargs, "dtype": dtype}))
        except (RuntimeError, ValueError) as error:
            with pytest.raises(type(error)):
                call(op, Sample(again.text, again.args, {**kwargs, "out": out}))
            continue
        core.manual_seed(0)
        call(op, Sample(again.text, again.args, {**kwargs, "out": out}))
        assert (out.dtype, out.shape) == (dtype, made.shape)
        if op.base != "empty":
            assert_same(out, made, f"{op.name}({sample.text}, out={wanted})")


# Values of arguments for operators that have laws and no samples.
MADE_UP: dict[str, Any] = {"int": 3, "int[]": (2,), "float": 1.0, "Scalar": 1, "TensorOrScalar": 1}


def _calls(op: Op) -> list[Sample]:
    """Return the samples without a dtype; if there are none, return a call with the required arguments."""
    found = [s for s in all_samples(op) if arguments_of(op, s).get("dtype") is None]
    required = [a.type.name for a in op.schema.arguments if a.required]
    # If there are several ints, they increase, as randint(low, high) requires.
    made_up = [MADE_UP[kind] for kind in required] if not found else []
    made_up = [
        value + i if kind == "int" else value
        for i, (kind, value) in enumerate(zip(required, made_up, strict=False))
    ]
    return found or [Sample("", tuple(made_up), {})]


@pytest.mark.parametrize(
    "op",
    ops_with(
        lambda op: (
            "out" in op.variants and any(a.name == "dtype" and a.type.optional for a in op.schema.arguments)
        )
    ),
)
def test_out_has_the_dtype_that_is_named(op: Op) -> None:
    """If a call gives a dtype, out= must have the dtype of the result. Otherwise the call raises, and out is not written."""
    done = 0
    for sample in _calls(op):
        for dtype in (core.float64, core.complex128):
            named = Sample(sample.text, sample.args, {**sample.kwargs, "dtype": dtype})
            try:
                wanted = call(op, named).dtype
            except (TypeError, RuntimeError):
                continue
            out = core.empty(0, dtype=wanted)
            assert call(op, named, out=out) is out
            wrong = core.empty(0, dtype=core.complex64)
            with pytest.raises(RuntimeError, match=r"\(dtype, out\)"):
                call(op, named, out=wrong)
            assert wrong.shape == (0,)
            done += 1
    assert done


@pytest.mark.parametrize(
    "op",
    ops_with(lambda op: "out" in op.variants and "requires_grad" in {a.name for a in op.schema.arguments}),
)
def test_what_is_said_of_a_new_tensor_is_said_of_out(op: Op) -> None:
    """A given device must be the device of out=, and requires_grad=True makes out require grad."""
    for sample in _calls(op):
        out = core.zeros(1)
        with pytest.raises(RuntimeError, match=r"\(device, out\)"):
            call(op, sample, device="meta", out=out)
        integers = core.zeros(1, dtype=core.int64)
        with pytest.raises(RuntimeError, match=r"\(requires_grad, out\)"):
            call(op, sample, requires_grad=True, out=integers)
        assert (out.shape, out.requires_grad, integers.tolist()) == ((1,), False, [0])
        out = core.empty(0, dtype=call(op, sample).dtype)
        if out.is_floating_point() or out.is_complex():
            call(op, sample, requires_grad=True, out=out)
            assert (out.requires_grad, out.is_leaf) == (True, True)
        there = core.empty(0, dtype=out.dtype, device="meta")
        assert call(op, sample, out=there) is there


# Operators that move a dimension twice if it is listed twice.
MAY_NAME_A_DIMENSION_TWICE = {"roll", "tile", "fft_fftshift", "fft_ifftshift"}


@pytest.mark.parametrize(
    "op",
    ops_with(
        lambda op: (
            op.samples
            and op.name not in MAY_NAME_A_DIMENSION_TWICE
            and any(
                a.name in ("dim", "dims") and a.type.name.startswith("int[]") for a in op.schema.arguments
            )
        )
    ),
)
def test_a_dimension_is_named_once(op: Op) -> None:
    """Operators raise if a list of dimensions contains a dimension twice, even once as a negative number."""
    name = next(a.name for a in op.schema.arguments if a.name in ("dim", "dims"))
    for sample in all_samples(op):
        bound = arguments_of(op, sample)
        tensor = bound[op.tensors[0].name]
        if tensor.ndim == 0:
            continue
        for twice in ((0, 0), (0, -tensor.ndim)):
            with pytest.raises((RuntimeError, ValueError)):
                getattr(core, op.base)(**{**bound, name: twice})


def test_steps_that_an_integer_dtype_drops() -> None:
    """A step whose integer part is zero raises ValueError; the fractions of other steps are dropped."""
    for given in ({"dtype": core.int64}, {"out": core.empty(0, dtype=core.int64)}):
        with pytest.raises(ValueError, match="integer dtype"):
            core.arange(0, 64, 0.5, **given)
        assert core.arange(0, 5.5, 2.5, **given).tolist() == [0, 2, 4]


def _writers() -> list[Any]:
    return [
        pytest.param(lambda t, v: core.full((2,), v, dtype=t.dtype), id="full"),
        pytest.param(lambda t, v: core.full_like(t, v), id="full_like"),
        pytest.param(lambda t, v: t.new_full((2,), v), id="new_full"),
        pytest.param(lambda t, v: t.clone().fill_(v), id="fill_"),
        pytest.param(lambda t, v: t.masked_fill(core.tensor([True, True]), v), id="masked_fill"),
        pytest.param(lambda t, v: t.scatter(0, core.tensor([0, 1]), v), id="scatter"),
        pytest.param(lambda t, v: t.index_fill(0, core.tensor([0, 1]), v), id="index_fill"),
        pytest.param(lambda t, v: core.constant_pad_nd(t[:0], (0, 2), v), id="constant_pad_nd"),
    ]


@pytest.mark.parametrize("write", _writers())
def test_numbers_that_do_not_fit_are_refused(write: Any) -> None:
    """All operators that write a number to a tensor refuse the same numbers, and convert other numbers in the same way."""
    infinity, nan = float("inf"), float("nan")
    refused = [
        (core.uint8, 300),
        (core.uint8, -300),
        (core.int8, 128),
        (core.int32, 2**31),
        (core.int64, 1e19),
    ]
    refused += [(dtype, v) for dtype in (core.int64, core.uint8) for v in (infinity, -infinity, nan)]
    refused += [(core.float32, 1e300), (core.float32, 1j), (core.int64, 1j)]
    for dtype, value in refused:
        with pytest.raises(RuntimeError, match="does not fit"):
            write(core.zeros(2, dtype=dtype), value)
    for dtype, value, wanted in (
        (core.uint8, 255, 255),
        (core.uint8, -1, 255),
        (core.int8, -128, -128),
        (core.int64, 2.9, 2),
        (core.int64, -2.9, -2),
        (core.bool, 2, True),
        (core.float32, infinity, infinity),
        (core.float32, 1 + 0j, 1.0),
    ):
        assert write(core.zeros(2, dtype=dtype), value).tolist() == [wanted, wanted], (dtype, value)


def test_results_grow_out_of_empty_views() -> None:
    """A view without elements as out= is resized within its storage."""
    whole = core.zeros(4)
    result = core.add(core.ones(2), core.ones(2), out=whole[1:1])
    assert result.tolist() == [2, 2]
    assert whole.tolist() == [2, 2, 0, 0]  # the empty slice begins at the start of its base
    beyond = core.mm(core.ones(2, 2), core.ones(2, 2), out=whole[3:3])
    assert beyond.tolist() == [[2, 2], [2, 2]]
    assert whole.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("make", "begin"),
    [(lambda x: x[1], 3), (lambda x: x[1:, :1], 3), (lambda x: x.t()[1:], 1), (lambda x: x.view(-1), 0)],
)
def test_results_grow_out_of_views(make: Any, begin: int) -> None:
    """A view as out= is resized from its first element on, as in PyTorch. The memory grows if it is too small."""
    a, b = core.arange(6.0).view(1, 3, 2), core.arange(8.0).view(1, 2, 4)
    for write, wanted in (
        (lambda out: core.bmm(a, b, out=out), a @ b),
        (lambda out: core.add(b, 1, out=out), b + 1),
        (lambda out: core.cat([a, a], out=out), core.cat([a, a])),
        (lambda out: core.sum(b, 0, out=out), b.sum(0)),
    ):
        whole = core.full((2, 3), -1.0)
        out = make(whole)
        with pytest.warns(UserWarning, match="was resized"):
            assert write(out) is out
        assert core.equal(out, wanted)
        assert out.storage_offset() == begin
        assert out.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
        seen = min(6 - begin, out.numel())
        assert whole.reshape(-1)[begin : begin + seen].tolist() == wanted.reshape(-1)[:seen].tolist()
        assert whole.reshape(-1)[:begin].tolist() == [-1] * begin


def test_operands_may_share_the_memory_of_a_view_that_grows() -> None:
    whole = core.arange(6.0)
    with pytest.warns(UserWarning, match="was resized"):
        grown = core.add(whole, 1, out=whole[2:4])
    assert grown.tolist() == [1, 2, 3, 4, 5, 6]
    assert whole.tolist() == [0, 1, 1, 2, 3, 4]


def test_memory_that_cannot_grow_is_refused() -> None:
    whole = core.zeros(4)
    held = whole.numpy()
    out = whole[:2]
    with pytest.warns(UserWarning, match="was resized"), pytest.raises(RuntimeError):
        core.add(core.ones(9), core.ones(9), out=out)
    assert out.shape == (2,)
    assert held.tolist() == [0, 0, 0, 0]


def test_complex_numbers_without_dimensions_keep_the_precision_of_floats() -> None:
    """A float32 tensor and a 0-d complex128 tensor promote to complex64."""
    one = core.tensor(1j, dtype=core.complex128)
    for dtype, wanted in (
        (core.float32, core.complex64),
        (core.float64, core.complex128),
        (core.bfloat16, core.complex64),
        (core.int64, core.complex128),
    ):
        assert (core.ones(2, dtype=dtype) + one).dtype == wanted
        assert core.result_type(core.ones(2, dtype=dtype), one) == wanted
    assert (core.tensor(1.0) + one).dtype == core.complex128


def test_a_dimension_of_size_one_makes_no_view() -> None:
    """einsum returns a view if it only reorders dimensions, and never if it sums, for all sizes."""
    for n in (1, 2):
        x = core.ones(3, n)
        assert core.einsum("ij->ji", x).data_ptr() == x.data_ptr()
        for equation in ("ij->i", "ij->", "ij,jk->ik"):
            operands = (x, core.ones(n, 1)) if "," in equation else (x,)
            assert core.einsum(equation, *operands).data_ptr() != x.data_ptr(), (equation, n)
        assert core.einsum("ij->i", x.to(core.int32)).dtype == core.int64


def test_bytes_are_masks() -> None:
    """uint8 tensors are masks, like bool tensors, in indices and in where()."""
    mask = core.tensor([1, 0, 2], dtype=core.uint8)
    assert core.arange(3)[mask].tolist() == [0, 2]
    x = core.zeros(3)
    x[mask] = 1
    assert x.tolist() == [1, 0, 1]
    assert core.where(mask, 1.0, core.zeros(3)).tolist() == [1, 0, 1]


def test_every_operator_is_looked_at() -> None:
    """The table of operators was found."""
    assert len(operators()) > 500


def test_ravel_copies_what_is_not_contiguous() -> None:
    column = core.zeros(2, 2)[:, 0]
    raveled = column.ravel()
    raveled[0] = 1
    assert column.tolist() == [0, 0]


def test_a_product_of_one_matrix_is_a_copy() -> None:
    x = core.ones(1, 1)
    core.chain_matmul(x).add_(1)
    assert x.item() == 1


def test_addr_rounds_once() -> None:
    """addr rounds once, in the dtype of the result, to which 0-d tensors are promoted like other tensors."""
    half, whole = core.tensor([0.702], dtype=core.float16), core.tensor([3])
    made = core.addr(core.tensor([1.0], dtype=core.float64), half, whole)
    assert made.item() == 1 + 3 * half.item()
    assert (
        core.addr(core.tensor(3.0, dtype=core.float64), core.ones(1), core.ones(1), beta=0).dtype
        == core.float64
    )


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16])
def test_weighted_products_of_half_precision_are_rounded_once(dtype: core.dtype) -> None:
    core.manual_seed(0)
    for name, shapes in {
        "addmv": ((32,), (32, 40), (40,)),
        "addr": ((32, 40), (32,), (40,)),
        "addmm": ((32, 8), (32, 40), (40, 8)),
        "addbmm": ((8, 6), (3, 8, 40), (3, 40, 6)),
        "baddbmm": ((3, 8, 6), (3, 8, 40), (3, 40, 6)),
    }.items():
        # Multiples of 1/8 below 4, whose products and sums are exact in float32.
        operands = [core.randint(-31, 32, shape).to(dtype) / 8 for shape in shapes]
        call = getattr(core, name)
        for beta, alpha in ((1, 1), (0.3125, -1.75), (0, 0.3125)):
            exact = call(*(t.double() for t in operands), beta=beta, alpha=alpha)
            got = call(*operands, beta=beta, alpha=alpha)
            assert got.dtype is dtype
            assert core.equal(got, exact.to(dtype)), (name, beta, alpha)


@pytest.mark.parametrize("size", [(), (1,), (3,)])
def test_addmv_broadcasts_its_addend(size: tuple[int, ...]) -> None:
    addend, matrix, vector = core.full(size, 2.0), core.ones(3, 4), core.arange(4.0)
    assert core.addmv(addend, matrix, vector, beta=3).tolist() == [12, 12, 12]
    assert core.addmv(addend, matrix[:, :0], vector[:0], beta=0.5).tolist() == [1, 1, 1]
    strided = core.arange(6.0)[::2]
    assert core.addmv(strided, matrix, vector).tolist() == [6, 8, 10]
    for wrong in (core.ones(1, 3), core.ones(2)):
        with pytest.raises(RuntimeError, match=r"addmv\(input\): must broadcast to shape \(3\)"):
            core.addmv(wrong, matrix, vector)


@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.float16, core.complex64, core.int64])
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (1, 1), (5, 3), (7, 65)])
def test_addr_of_any_addend(rows: int, columns: int, dtype: core.dtype) -> None:
    left, right = core.arange(rows).to(dtype) - 2, core.arange(columns).to(dtype) + 1
    whole = (core.arange(rows * columns) % 5).to(dtype).view(rows, columns)
    for addend in (
        whole,
        whole.t().contiguous().t(),
        core.ones(columns, dtype=dtype),
        core.ones((), dtype=dtype),
    ):
        for beta, alpha in ((1, 1), (3, 1), (1, 2), (0, 2), (2, 0)):
            expected = beta * addend + alpha * left[:, None] * right
            assert core.equal(core.addr(addend, left, right, beta=beta, alpha=alpha), expected)
    written = whole.clone()
    assert written.addr_(left, right, beta=2) is written
    assert core.equal(written, 2 * whole + left[:, None] * right)


@pytest.mark.parametrize("weights", [{}, {"beta": 0}, {"beta": 0, "alpha": 2}, {"beta": 0.5, "alpha": 3}])
def test_addr_in_place_equals_addr(weights: dict[str, float]) -> None:
    """This includes vectors that are parts of the written matrix."""
    for dtype in (core.float32, core.float64, core.complex64, core.float16, core.int64):
        if dtype is core.int64 and weights.get("beta") == 0.5:
            continue
        for parts in (False, True):
            matrix = core.arange(12).reshape(3, 4).to(dtype)
            left, right = matrix[:, 1], matrix[2]
            if not parts:
                left, right = left.clone(), right.clone()
            wanted = core.addr(matrix, left, right, **weights)
            assert matrix.addr_(left, right, **weights) is matrix
            assert core.equal(matrix, wanted)


def test_addr_does_not_read_an_addend_of_weight_zero() -> None:
    got = core.addr(core.full((2, 2), math.nan), core.ones(2), core.ones(2), beta=0, alpha=3)
    assert got.tolist() == [[3, 3], [3, 3]]
    with pytest.raises(RuntimeError):
        core.addr(core.ones(3, 2), core.ones(2), core.ones(2))
    with pytest.raises(RuntimeError):
        core.addr(core.ones(2, 2), core.ones(2, 1), core.ones(2))


def test_shifted_polynomials_of_small_integers() -> None:
    x = core.tensor([0], dtype=core.uint8)
    assert core.special_shifted_chebyshev_polynomial_t(x, core.tensor([1])).tolist() == [-1]
    double = core.tensor(1.0, dtype=core.float64)
    assert core.special_shifted_chebyshev_polynomial_v(x, double).dtype == core.float64
    assert core.special_shifted_chebyshev_polynomial_v(x, 1.0).dtype == core.float32


def test_nan_to_num_of_expanded_complex_numbers() -> None:
    assert core.tensor(complex("nan+2j")).expand(2, 1).nan_to_num(1.0).tolist() == [[1 + 2j], [1 + 2j]]


def test_kl_div_of_negative_targets_is_nan() -> None:
    assert math.isnan(core.kl_div(core.zeros(1), core.tensor([-0.1])).item())


def test_adjoint_of_a_number_is_its_conjugate() -> None:
    assert core.tensor(1 + 2j).adjoint().item() == 1 - 2j


def test_chunks_of_nothing_are_tensors_of_their_own() -> None:
    for chunk in (core.chunk, core.unsafe_chunk):
        first, second = chunk(core.zeros(0), 2)
        first.unsqueeze_(1)
        assert (first.shape, second.shape) == ((0, 1), (0,))


def test_polynomials_that_overflow_keep_their_sign() -> None:
    """The result has the sign of the leading term."""
    x = core.tensor([-math.inf, math.inf, -1e200], dtype=core.float64)
    for n in range(1, 6):
        for polynomial in (core.special_hermite_polynomial_h, core.special_hermite_polynomial_he):
            assert polynomial(x, n)[:2].sign().tolist() == [(-1) ** n, 1], (polynomial.__name__, n)
        assert core.special_laguerre_polynomial_l(x, n)[:2].sign().tolist() == [1, (-1) ** n]
    assert core.special_hermite_polynomial_h(x, 3)[2].item() == -math.inf


def test_spherical_bessel_function_at_infinity() -> None:
    x = core.tensor([math.inf, -math.inf, 0.0])
    assert core.special_spherical_bessel_j0(x).tolist() == [0, 0, 1]


def test_parts_of_complex_numbers_are_replaced() -> None:
    z = core.tensor(
        [complex(1, math.inf), complex(math.nan, 2), complex(-math.inf, math.nan)], dtype=core.complex128
    )
    assert core.nan_to_num(z, 4.0, 5.0, -6.0).tolist() == [1 + 5j, 4 + 2j, -6 + 4j]
    z.nan_to_num_(posinf=7.0, neginf=8.0)
    assert z.tolist() == [1 + 7j, 2j, 8]


def test_einsum_adds_small_integers_without_wrapping_around() -> None:
    one = core.tensor([[-1.0]], dtype=core.float64)
    for dtype, number in ((core.bool, 1), (core.int8, 100), (core.uint8, 200)):
        x = core.tensor([[number, number]]).to(dtype)
        assert core.einsum("ij,jk->ik", x, one).tolist() == [[-2.0 * number]]
        assert core.einsum("jk,ij->ik", one, x).tolist() == [[-2.0 * number]]


def test_einsum_of_different_dtypes_equals_einsum_of_the_common_dtype() -> None:
    for n in (1, 2):
        x = core.arange(2 * n).reshape(2, n) > 0
        y, z = core.ones(n, 3, dtype=core.float64), core.tensor([2.0, -1.0])
        for equation, operands in (
            ("ij,jk->ik", (x, y)),
            ("ij,jk,i->k", (x, y, z)),
            ("ij,jk->ki", (x.int(), y)),
        ):
            expected = core.einsum(equation, *[t.double() for t in operands])
            result = core.einsum(equation, *operands)
            assert result.dtype == core.float64
            assert result.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("name", "join", "neutral", "values"),
    [
        ("cumprod", operator.mul, 1.0, [1e-300, 1e200, 1e200, 3.0, -1e200]),
        ("cumprod", operator.mul, 1.0, [1e300, 1e-200, 1e-200, 3.0, -1e-200]),
        ("cumprod", operator.mul, 1.0, [0.0, 1e308, -1e308, 2.0]),
        ("cumsum", operator.add, 0.0, [-1.7e308, 1.7e308, 1.7e308, -1e308]),
    ],
)
@pytest.mark.parametrize("before", range(9))
def test_running_results_are_those_of_one_element_after_the_other(
    name: str, join: Any, neutral: float, values: list[float], before: int
) -> None:
    """Scans give the results of a loop over the elements, even if some elements alone would combine to an overflow."""
    line = [neutral] * before + values + [neutral] * 12
    found = getattr(core, name)(core.tensor(line, dtype=core.float64), 0)
    assert found.tolist() == list(itertools.accumulate(line, join))


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_variance_of_nothing(name: str, dtype: str) -> None:
    nothing = core.zeros(2, 0, dtype=getattr(core, dtype))
    for correction in (1, 0, -2):
        whole, rows = (getattr(core, name)(nothing, dim, correction=correction) for dim in (None, 1))
        assert math.isnan(whole.item())
        assert all(map(math.isnan, rows.tolist()))


def test_exponential_of_one_number() -> None:
    assert core.matrix_exp(core.tensor([[[0.0]], [[-math.inf]], [[math.inf]]])).tolist() == [
        [[1.0]],
        [[0.0]],
        [[math.inf]],
    ]


@pytest.mark.parametrize("upper", [False, True])
def test_inverse_from_singular_factor(upper: bool) -> None:
    factor = core.eye(3).repeat(2, 1, 1)
    factor[1, 1, 1] = 0
    with pytest.raises(core.linalg.LinAlgError, match=r"matrix 1 of the batch .* element 2 of the diagonal"):
        core.cholesky_inverse(factor, upper)


@pytest.mark.parametrize("dtype", [core.complex64, core.complex128])
def test_infinite_complex_numbers_are_subtracted_part_by_part(dtype: core.dtype) -> None:
    x = core.tensor([complex(math.inf, 2), complex(3, -math.inf)], dtype=dtype)
    assert (1 - x).tolist() == [complex(-math.inf, -2), complex(-2, math.inf)]
    assert core.add(x, x, alpha=2).tolist() == [complex(math.inf, 6), complex(9, -math.inf)]


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16])
def test_cross_products_of_half_precision_are_rounded_once(dtype: core.dtype) -> None:
    a = core.tensor([[300.5, 257.0, 3.0], [1.0, 1.0, 1.0]], dtype=dtype)
    b = core.tensor([[299.0, 256.0, 1.0], [1.5, -0.25, 0.5]], dtype=dtype)
    exact = core.linalg.cross(a.double(), b.double())
    assert core.linalg.cross(a, b).tolist() == exact.to(dtype).tolist()


@pytest.mark.parametrize("n", [1, 5, 40])
def test_counts_of_elements_that_differ_know_nan(n: int) -> None:
    a, b = core.zeros(2, n, dtype=core.float64), core.ones(1, n, dtype=core.float64)
    b[0, -1] = math.inf
    a[1, 0] = math.nan
    first, second = core.cdist(a, b, 0.0).reshape(-1).tolist()
    assert first == n
    assert math.isnan(second)


def test_inverse_from_a_factor_of_tiny_elements() -> None:
    """Elements of the inverse that fit the dtype are correct, even if other elements overflow."""
    factor = core.tensor([[1e-20, 0.0, 0.0], [1e-20, -1e-10, 0.0], [-1e-30, -1e-30, 1e-30]])
    found = core.cholesky_inverse(factor)
    assert found[0, 1].item() == pytest.approx(-1e30, rel=1e-5)
    assert found[1, 1].item() == pytest.approx(2e20, rel=1e-5)
    assert found[2, 2].item() == math.inf


@pytest.mark.parametrize("name", ["tril", "triu"])
@pytest.mark.parametrize("diagonal", [-9, -1, 0, 2, 9])
def test_triangles_in_place(name: str, diagonal: int) -> None:
    whole = np.arange(1.0, 181.0).reshape(3, 6, 10)
    for view in (lambda t: t, lambda t: t.transpose(1, 2), lambda t: t[:, ::2, 1:], lambda t: t[1]):
        tensor = core.tensor(whole)
        part = view(tensor)
        expected, version = getattr(np, name)(part.numpy().copy(), diagonal), tensor._version
        outside = core.ones_like(tensor, dtype=core.bool)
        view(outside).fill_(False)
        kept = tensor[outside].clone()
        assert getattr(part, f"{name}_")(diagonal) is part
        np.testing.assert_array_equal(part.numpy(), expected)
        assert core.equal(tensor[outside], kept)
        assert tensor._version == version + 1
    fixed = np.ones((3, 3))
    fixed.flags.writeable = False
    for tensor in (core.from_numpy(fixed), core.ones(3, 1).expand(3, 3)):
        if tensor.is_contiguous() and tensor.device.type != "cpu":
            continue  # a copy of the array, which can be written
        with pytest.raises(RuntimeError):
            getattr(tensor, f"{name}_")(diagonal)
        assert tensor.eq(1).all()


def test_angles_of_real_numbers() -> None:
    parts = [0.0, -0.0, 1.5, -1.5, 1e-45, -1e-45, math.inf, -math.inf, math.nan]
    for dtype in (core.float16, core.bfloat16, core.float32, core.float64):
        for x in (core.tensor(parts, dtype=dtype), core.tensor(parts * 30, dtype=dtype)[::2]):
            got, pi = core.angle(x), core.tensor(math.pi, dtype=dtype)
            assert got.dtype is dtype
            expected = core.where(x.isnan(), x, core.where(x < 0, pi, core.zeros((), dtype=dtype)))
            np.testing.assert_array_equal(got.double().numpy(), expected.double().numpy())
    assert core.angle(core.tensor(-3)).item() == pytest.approx(math.pi)


@pytest.mark.parametrize("threads", [1, 2])
def test_strided_operands_of_several_dimensions(threads: int) -> None:
    """The parts of threads begin and end inside rows, and dimensions end at the same time."""
    before = core.get_num_threads()
    core.set_num_threads(threads)
    try:
        for shape in ((37, 41, 45), (3, 17, 5, 300), (2, 2, 2, 2, 15, 20, 60), (70_001, 2), (1, 66_000)):
            a = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
            b = np.arange(float(shape[-1]))
            for axes in (None, [0, *range(len(shape) - 1, 0, -1)], [*range(1, len(shape)), 0]):
                x = core.from_numpy(a) if axes is None else core.from_numpy(a).permute(axes)
                y = a if axes is None else a.transpose(axes)
                out = core.zeros(*y.shape, 2, dtype=core.float64)[..., 0]
                core.add(x, x.flip(0), out=out)
                np.testing.assert_array_equal(out.numpy(), y + np.flip(y, 0))
                np.testing.assert_array_equal(x.contiguous().numpy(), y)
                np.testing.assert_array_equal(x.to(core.float32).numpy(), y.astype(np.float32))
            np.testing.assert_array_equal((core.from_numpy(a) * core.from_numpy(b)).numpy(), a * b)
    finally:
        core.set_num_threads(before)


@pytest.mark.parametrize("width", [1, 7, 16, 63, 64, 65, 130, 200])
@pytest.mark.parametrize("divisor", [1.0, 3.0])
def test_bags_of_rows(width: int, divisor: float) -> None:
    random = np.random.default_rng(width)
    table, indices = random.normal(size=(9, width)), random.integers(0, 9, 40)
    indices[:3] = 5  # all rows of a bag that has some are skipped
    bags = np.repeat([1, 2, 4, 5, 6], [3, 1, 16, 18, 2])  # none in bags 0, 3 and 7
    for skipped in (-1, 5):
        rows = [table[[i for i in indices[bags == bag] if i != skipped]] for bag in range(8)]
        for dtype in (core.float32, core.float64):
            weight, given = core.tensor(table, dtype=dtype), (core.tensor(indices), core.tensor(bags))
            got = core._embedding_bag(weight, *given, 8, divisor, skipped, False)
            np.testing.assert_allclose(
                got.double().numpy(), [r.sum(0) / divisor for r in rows], rtol=2e-6, atol=2e-6
            )


@pytest.mark.parametrize("n", [1, 15, 16, 17, 300])
def test_float64_becomes_float16(n: int) -> None:
    ends = [
        0.0,
        -0.0,
        65504.0,
        65519.0,
        65520.0,
        -1e300,
        5.9e-8,
        2.9e-8,
        1e-300,
        math.inf,
        math.nan,
        1 + 2**-11,
    ]
    wide = np.resize(np.array(ends), 2 * n)
    with np.errstate(over="ignore"):
        wanted = wide.astype(np.float32).astype(np.float16)
    np.testing.assert_array_equal(core.tensor(wide).to(core.float16).numpy(), wanted)
    np.testing.assert_array_equal(core.tensor(wide)[::2].to(core.float16).numpy(), wanted[::2])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.bfloat16])
def test_output_padding_of_transposed_convolutions_with_one_tap(dtype: core.dtype, groups: int) -> None:
    """The additional elements have no products, so they are the bias."""
    x, weight = core.randn(2, 4, 3, 5, dtype=dtype), core.randn(4, 2, 1, 1, dtype=dtype)
    bias = core.randn(2 * groups, dtype=dtype)
    inside = core.conv_transpose2d(x, weight, bias, groups=groups)
    padded = core.conv_transpose2d(x, weight, bias, groups=groups, dilation=2, output_padding=1)
    assert padded.shape == (2, 2 * groups, 4, 6)
    assert core.allclose(padded[:, :, :3, :5], inside, rtol=1e-2, atol=1e-2)
    for edge in (padded[:, :, 3, :], padded[:, :, :, 5]):
        assert core.equal(edge, bias[:, None].expand_as(edge))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_whose_results_have_no_elements(dims: int) -> None:
    """As in PyTorch, results may have size 0, and the input of an empty batch may have size 0."""
    convolve = getattr(core, f"conv_transpose{dims}d")
    weight = core.ones(3, 4, *[3] * dims)
    for batch, size, padding, wanted in (
        (0, 0, 0, 2),
        (0, 0, 1, 0),
        (0, 2, 2, 0),
        (0, 1, 1, 1),
        (2, 2, 2, 0),
    ):
        x = core.ones(batch, 3, *[size] * dims)
        assert convolve(x, weight, padding=padding).shape == (batch, 4, *[wanted] * dims)
    for batch, size, padding in ((0, 0, 2), (0, 1, 2), (2, 1, 2)):
        with pytest.raises(RuntimeError, match="sizes must not be negative"):
            convolve(core.ones(batch, 3, *[size] * dims), weight, padding=padding)
    with pytest.raises(RuntimeError, match="only the batch may be empty"):
        convolve(core.ones(2, 3, *[0] * dims), weight)


@pytest.mark.parametrize("dtype", [core.int64, core.uint8, core.bool, core.float16, core.float64])
def test_bernoulli_writes_to_any_dtype(dtype: core.dtype) -> None:
    out = core.empty(0, dtype=dtype)
    assert core.bernoulli(core.tensor([0.0, 1.0, 1.0]), out=out) is out
    assert out.tolist() == [0, 1, 1]


def test_sums_are_computed_in_the_dtype_of_out() -> None:
    """As in PyTorch, the dtype of out= has the effect of the argument `dtype`."""
    half = core.tensor([60000.0, 60000.0, 3.0], dtype=core.float16)
    bytes_ = core.tensor([200, 200, 3], dtype=core.uint8)
    fractions = core.tensor([1.75, 1.75, 3.0])
    for name in ("sum", "prod", "cumsum", "cumprod", "nansum", "mean", "nanmean"):
        call = getattr(core, name)
        for x, dtype in (
            (half, core.float32),
            (half, core.float64),
            (bytes_, core.uint8),
            (bytes_, core.float32),
            (fractions, core.int32),
            (fractions, core.float16),
        ):
            out = core.empty(0, dtype=dtype)
            if "mean" in name and not (x.dtype.is_floating_point and dtype.is_floating_point):
                continue
            wanted = call(x, 0, dtype=dtype)
            assert call(x, 0, out=out) is out
            assert out.dtype is dtype
            assert core.equal(out, wanted), (name, x.dtype, dtype)
    total = core.empty(0)
    assert core.sum(half, out=total).item() == 120003
    assert core.sum(fractions, 0, out=core.empty(0, dtype=core.int64)).item() == 5
    with pytest.raises(RuntimeError, match=r"\(dtype, out\)"):
        core.sum(half, 0, dtype=core.float16, out=total)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64", "complex128"])
@pytest.mark.parametrize("size", [2, 33, 80])
def test_a_product_that_is_multiplied_by_zero_is_not_computed(dtype: str, size: int) -> None:
    factor = core.full((size, size), math.inf, dtype=getattr(core, dtype))
    start = core.arange(size).to(factor.dtype)
    want = (start * 2).expand(size, size)
    assert core.equal(core.addmm(start, factor, factor, alpha=0, beta=2), want)
    assert core.equal(core.addmv(start, factor, factor[0], alpha=0, beta=2), want[0])
    batch = factor.expand(3, size, size)
    assert core.equal(core.baddbmm(start, batch, batch, alpha=0, beta=2), want.expand(3, size, size))
    assert core.equal(core.addbmm(start, batch, batch, alpha=0, beta=2), want)
    assert core.equal(core.addmm(start, factor, factor, alpha=0, beta=0), core.zeros_like(want))
