"""What the fuzzer leaves out: calls without a result that both libraries define."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy_library
import pytest
from fuzz.execute import Machine
from fuzz.generate import Generator
from fuzz.program import Call, Input, Named, Program, Ref
from fuzz.undefined import APART, FULL_RANK, SUMS, Draft, Undefined, shares_memory

RIGHT = Machine(numpy_library)


@pytest.mark.parametrize(
    ("call", "mode", "defined"),
    [
        (Call("add_", ".add_", "v0", (Ref("x0"), Ref("x0"))), "plain", True),
        (Call("add_", ".add_", "v0", (Ref("x0"), Ref("x0"))), "jvp", False),
        (Call("add_", ".add_", "v0", (Ref("x0"), 2)), "jvp", True),
        (Call("setitem", "[]=", "v0", (Ref("x0"), Ref("x1"), 2)), "plain", True),
        (Call("setitem", "[]=", "v0", (Ref("x0"), Ref("x1"), 2)), "vmap", False),
        (Call("add_", ".add_", "v0", (Ref("x2"), 2)), "plain", True),
        (Call("setitem", "[]=", "v0", (Ref("x1"), ..., Ref("x0"))), "plain", True),
        (Call("setitem", "[]=", "v0", (Ref("x1"), ..., Ref("x2"))), "plain", False),
        (Call("add_", ".add_", "v0", (Ref("x2"), 2)), "backward", False),
        (Call("to", ".to", "v0", (Ref("x3"), Named("int16"))), "plain", False),
        (Call("to", ".to", "v0", (Ref("x3"), Named("int32"))), "plain", True),
        (Call("to", ".to", "v0", (Ref("x3"), Named("float32"))), "plain", True),
        (Call("short", ".short", "v0", (Ref("x3"),)), "plain", False),
        (Call("short", ".short", "v0", (Ref("x0"),)), "plain", True),
        (Call("total", "torch.total", "v0", (Ref("x2"),), {"dtype": Named("int64")}), "plain", False),
        (Call("total", "torch.total", "v0", (Ref("x0"),), {"dtype": Named("int64")}), "plain", True),
        (Call("setitem", "[]=", "v0", (Ref("x4"), 0, Ref("x5"))), "vmap", False),
        (Call("setitem", "[]=", "v0", (Ref("x0"), 0, Ref("x5"))), "vmap", True),
        (Call("view_copy", ".view", "v0", (Ref("x2"), Named("int32"))), "plain", False),
        (Call("view_copy", ".view", "v0", (Ref("x0"), Named("int32"))), "plain", True),
        (Call("fill", "torch.fill", "v0", (Ref("x4"), Ref("x5"))), "plain", False),
        (Call("fill", "torch.fill", "v0", (Ref("x0"), Ref("x5"))), "plain", True),
        (Call("pow_", ".pow_", "v0", (Ref("x6"), -1)), "plain", False),
        (Call("pow_", ".pow_", "v0", (Ref("x6"), Ref("x5"))), "plain", False),  # no integer for NaN
    ],
)
def test_a_program_of_undefined_calls_is_none(call: Call, mode: str, defined: bool) -> None:
    inputs = (
        Input("x0", "float32", (2,), (1.0, 2.0)),
        Input("x1", "int64", (2,), (0, 0)),
        Input("x2", "float32", (2,), (1.0, float("nan"))),
        Input("x3", "float32", (2,), (1.0, 1e5)),
        Input("x4", "int64", (1,), (0,)),
        Input("x5", "float32", (), (float("nan"),)),
        Input("x6", "uint8", (1,), (2,)),
    )
    assert Generator([], RIGHT).is_defined(Program(inputs, (call,), mode)) == defined


def test_parts_of_halves_are_judged_as_other_parts() -> None:
    """Several checks apply to one call: PyTorch does not follow writes to the results of `unsafe_split`."""
    parts = Call("unsafe_split", ".unsafe_split", "v0", (Ref("x0"), 1))
    for dtype in ("float16", "float32"):
        draft = Draft("backward", calls=[parts])
        draft.variables = {"v0[0]": RIGHT.make(Input("v0[0]", dtype, (1,), (2.0,)))}
        square = Call("pow_", ".pow_", "v1", (Ref("v0[0]"), 2))
        assert Undefined(RIGHT, draft).is_undefined(square, draft.variables)
        draft.calls = []
        assert not Undefined(RIGHT, draft).is_undefined(square, draft.variables)


def test_bytes_of_nan_are_not_compared() -> None:
    undefined = Undefined(RIGHT, Draft("plain"))
    for value, hidden in ((float("nan"), True), (1.0, False)):
        x = RIGHT.make(Input("x0", "float32", (1,), (value,)))
        seen = numpy_library.Tensor(x.data.view("int32"))
        assert undefined.has_nan_bytes({"x0": x, "v0": seen}) == hidden
        assert not undefined.has_nan_bytes({"x0": x, "v0": seen.clone()})


@pytest.mark.parametrize(
    ("op", "mode", "values", "undefined"),
    [
        ("linalg_qr", "plain", (1.0, 2.0, 3.0, 4.0), False),
        ("linalg_qr", "plain", (1.0, 1.0, 1.0, 1.0), True),
        ("linalg_qr", "plain", (1.0, np.nan, 1.0, 1.0), True),
        ("linalg_qr", "plain", (1.0, 2.0, 0.0, 5.0), False),
        ("linalg_lu", "plain", (1.0, 2.0, 2.0, 5.0), False),
        ("linalg_lu", "plain", (2.0, 3.0, -2.0, 5.0), True),
        ("linalg_tensorinv", "plain", (1.0, 2.0, 2.0, 5.0), False),
        ("linalg_tensorinv", "plain", (1.0, 2.0, 2.0, 4.0), True),
        ("linalg_det", "jvp", (1.0, 2.0, 2.0, 4.0), True),
        ("logsumexp", "backward", (1.0, 2.0, 1e11, 4.0), True),
        ("logsumexp", "plain", (1.0, 2.0, 1e11, 4.0), False),
        ("cholesky", "backward", (1.0, 2.0, 2.0, 4.0), True),
        ("cholesky", "backward", (2.0, 1.0, 1.0, 2.0), False),
        ("cholesky", "plain", (1.0, 2.0, 2.0, 4.0), True),
        ("cholesky", "plain", (2.0, 1.0, 1.0, 2.0), False),
        ("cholesky_inverse", "backward", (1e-9, 0.0, 1.0, 1.0), True),
        ("cholesky_inverse", "backward", (2.0, 0.0, 1.0, 1.0), False),
        ("fractional_max_pool2d", "plain", (np.nan, 2.0, np.nan, 1.0), True),
        ("fractional_max_pool2d", "plain", (np.nan, 2.0, 3.0, 1.0), False),
        ("max_pool2d", "plain", (np.nan, 2.0, np.nan, 1.0), False),
        ("linalg_ldl_factor", "plain", (1.0, 2.0, 2.0, 5.0), False),
        ("linalg_ldl_factor", "plain", (1.0, 2.0, 2.0, 4.0), True),
        ("linalg_ldl_factor", "plain", (np.nan, 2.0, 2.0, 5.0), True),
        ("hardshrink", "backward", (np.nan, 2.0, 3.0, 1.0), True),
        ("hardshrink", "plain", (np.nan, 2.0, 3.0, 1.0), False),
        ("digamma", "plain", (-1.0, 2.0, -0.5, 1.0), False),
        ("digamma", "plain", (-1.000001, 2.0, -0.5, 1.0), True),
        ("mvlgamma", "jvp", (3.000001, 2.0, 3.5, 1.0), True),
        ("mvlgamma", "jvp", (3.0, 2.0, 3.5, 2.25), False),
        ("mvlgamma", "plain", (3.000001, 2.0, 3.5, 1.0), False),
        ("polar", "backward", (1.0, 2.0, 0.5, -1.0), True),
        ("norm", "jvp", (1.0, 0.0, 0.0, 1.0), True),
        ("linalg_svdvals", "plain", (1.0, 0.0, 0.0, 1.0), False),
        ("linalg_svdvals", "jvp", (1.0, 0.0, 0.0, 1.0), True),
        ("linalg_svdvals", "jvp", (1.0, 0.0, 0.0, 2.0), False),
        ("special_hermite_polynomial_h", "plain", (1.0, 2.0, 1.0, 1.0), False),
        ("grid_sampler", "plain", (1.0, np.inf, 1.0, 1.0), True),
        ("add", "plain", (1.0, np.inf, 1.0, 1.0), False),
        ("logit", "backward", (0.5, 0.25, 0.75, 1.5), True),
        ("logit", "plain", (0.5, 0.25, 0.75, 1.5), False),
        ("quantile", "backward", (0.5, 0.25, 0.5, 1.5), True),
        ("topk", "jvp", (0.5, 0.25, 0.5, 1.5), True),
        ("topk", "jvp", (0.5, 0.25, 0.75, 1.5), False),
        ("topk", "plain", (0.5, 0.25, 0.5, 1.5), False),
        ("igamma", "plain", (-0.5, 0.25, 0.5, 1.5), True),
        ("fft_fft", "plain", (1.0, np.inf, 1.0, 1.0), True),
        ("cholesky_inverse", "plain", (1e-310, 0.0, 1.0, 1.0), True),
        ("cholesky_inverse", "plain", (1e-300, 0.0, 1.0, 1.0), False),
    ],
)
def test_what_is_undefined_is_not_generated(op: str, mode: str, values: Any, undefined: bool) -> None:
    tensor = RIGHT.make(Input("x0", "float64", (2, 2), values))
    assert Undefined(RIGHT, Draft(mode)).is_beyond(op, [tensor], [Ref("x0")]) == undefined


def test_matrices_that_are_not_square_are_judged() -> None:
    """An error of an operator is not a mistake of the fuzzer."""
    for shape in ((3, 2), (1, 2), (0, 3), (2,), ()):
        tensor = RIGHT.make(Input("x0", "float64", shape, tuple(range(int(np.prod(shape))))))
        for op in sorted({*FULL_RANK, *APART, "linalg_tensorinv"}):
            for mode in ("plain", "jvp"):
                assert Undefined(RIGHT, Draft(mode)).is_beyond(op, [tensor], [Ref("x0")]) in (True, False)


@pytest.mark.parametrize(("power", "undefined"), [(-1, True), (2, False), (400, True)])
def test_powers_of_a_singular_matrix_are_judged(power: int, undefined: bool) -> None:
    tensor = RIGHT.make(Input("x0", "float64", (2, 2), (1.0, 2.0, 2.0, 4.0)))
    given = [Ref("x0"), power]
    assert Undefined(RIGHT, Draft("plain")).is_beyond("linalg_matrix_power", [tensor], given) == undefined


@pytest.mark.parametrize(
    ("value", "undefined"),
    [(complex(-2, -0.0), True), (-2 + 0j, False), (complex(2, -0.0), False), (-2 - 1j, False)],
)
def test_logarithms_beside_a_zero_of_either_sign_are_undefined(value: complex, undefined: bool) -> None:
    tensor = RIGHT.make(Input("x0", "complex128", (1,), (value,)))
    assert Undefined(RIGHT, Draft("plain")).is_beyond("log", [tensor], [Ref("x0")]) == undefined


@pytest.mark.parametrize(
    ("values", "undefined"), [((2.2,) * 3, True), ((2.2, 2.3, 2.2), False), ((2.2,), True)]
)
def test_correlations_of_equal_numbers_are_undefined(values: tuple[float, ...], undefined: bool) -> None:
    shape = (len(values),) if len(values) > 1 else ()
    tensor = RIGHT.make(Input("x0", "float64", shape, values))
    assert Undefined(RIGHT, Draft("plain")).is_beyond("corrcoef", [tensor], [Ref("x0")]) == undefined


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_powers_of_a_matrix_that_is_not_finite_are_undefined(value: float) -> None:
    tensor = RIGHT.make(Input("x0", "float64", (2, 2), (1.0, 2.0, value, 0.0)))
    assert Undefined(RIGHT, Draft("plain")).is_beyond("linalg_matrix_power", [tensor], [Ref("x0"), 3])


@pytest.mark.parametrize(
    ("limit", "undefined"), [(2.0, True), (0.5, True), (1.25, False), (0.0, True), (False, True)]
)
def test_singular_values_at_the_limit_are_judged(limit: float, undefined: bool) -> None:
    tensor = RIGHT.make(Input("x0", "float64", (2, 2), (0.0, 2.0, 4.0, 0.0)))
    given = [Ref("x0"), limit]
    assert Undefined(RIGHT, Draft("plain")).is_beyond("linalg_matrix_rank", [tensor], given) == undefined


@pytest.mark.parametrize(
    ("given", "mode", "undefined"),
    [
        ((1, 0, 5.0), "jvp", True),
        ((1, 0, 5.0), "plain", False),
        ((1, 0, 4.0), "jvp", False),
        ((1, 1, 4.0), "jvp", True),
        ((float("inf"), 0, 3), "backward", True),
        ((2.0, 5, 1.0), "jvp", False),
        ((2.0,), "jvp", False),
    ],
)
def test_norms_at_the_largest_one_are_judged(given: Any, mode: str, undefined: bool) -> None:
    tensor = RIGHT.make(Input("x0", "float64", (2, 2), (1.0, 2.0, -3.0, 2.0)))
    assert Undefined(RIGHT, Draft(mode)).is_beyond("renorm", [tensor], [Ref("x0"), *given]) == undefined


def test_norms_of_no_elements_are_judged() -> None:
    tensor = RIGHT.make(Input("x0", "float64", (0, 2), ()))
    assert not Undefined(RIGHT, Draft("jvp")).is_beyond("renorm", [tensor], [Ref("x0"), 2.0, 0, 1.0])


def test_labels_that_do_not_fit_have_no_derivative() -> None:
    for labels, undefined in ((1, False), (2, False), (3, True)):
        inputs = [
            Input("x0", "float64", (3, 1, 2), (0.5,) * 6),
            Input("x1", "int64", (1, labels), (1,) * labels),
            Input("x2", "int64", (1,), (3,)),
            Input("x3", "int64", (1,), (labels,)),
        ]
        tensors = [RIGHT.make(one) for one in inputs]
        given = [Ref(one.name) for one in inputs]
        assert Undefined(RIGHT, Draft("backward")).is_beyond("ctc_loss", tensors, given) == undefined
        assert not Undefined(RIGHT, Draft("plain")).is_beyond("ctc_loss", tensors, given)
        other = [*tensors[:3], RIGHT.make(Input("x3", "int64", (2,), (labels, labels)))]
        assert not Undefined(RIGHT, Draft("backward")).is_beyond("ctc_loss", other, given)  # an error


def test_scattering_into_shared_memory_is_undefined() -> None:
    class Viewed:
        def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
            self.shape, self.strides = shape, strides

        def stride(self) -> tuple[int, ...]:
            return self.strides

        def dim(self) -> int:
            return len(self.shape)

        def numel(self) -> int:
            return int(np.prod(self.shape))

    assert shares_memory(Viewed((3, 6), (1, 1)))
    assert shares_memory(Viewed((3,), (0,)))
    assert not shares_memory(Viewed((3, 6), (6, 1)))
    assert not shares_memory(Viewed((1, 6), (0, 1)))
    assert not shares_memory(Viewed((0, 6), (0, 0)))
    assert not shares_memory(Viewed((), ()))


def test_leading_columns_of_wide_matrices_are_judged() -> None:
    for values, singular in (((0.0, 0.0, 1.0, 2.0, 0.0, 3.0), True), ((1.0, 0.0, 1.0, 2.0, 1.0, 3.0), False)):
        tensor = RIGHT.make(Input("x0", "float64", (2, 3), values))
        for op in ("linalg_lu", "linalg_qr"):
            assert Undefined(RIGHT, Draft("jvp")).is_beyond(op, [tensor], [Ref("x0")]) == singular


@pytest.mark.parametrize(
    ("values", "undefined"),
    [
        ((0.5, 1.5, 0.0, -2.0, 0.5, 1.5), True),
        ((0.5, 1.5, 0.0, -2.0, 0.5, 1.0), False),
        ((2.0, 1.5, 0.0, -2.0, 0.0, 0.0), False),
    ],
)
def test_signs_that_rounding_decides(values: Any, undefined: bool) -> None:
    tensor = RIGHT.make(Input("x0", "float64", (3, 2), values))
    assert Undefined(RIGHT, Draft("plain")).is_beyond("linalg_qr", [tensor], [Ref("x0")]) == undefined


@pytest.mark.parametrize(
    ("op", "dtype", "values", "undefined"),
    [
        ("mm", "float32", (1e20, 1.0, -1e20, 1.0), True),  # infinite or NaN, as products are rounded
        ("mm", "float32", (1e12, 1.0, -1e12, 1.0), False),
        ("mm", "float64", (1e20, 1.0, -1e20, 1.0), False),
        ("mm", "float16", (300.0, 1.0, 1.0, 1.0), True),
        ("mm", "float32", (float("inf"), 1.0, 1.0, 1.0), False),
        ("add", "float32", (1e20, 1.0, -1e20, 1.0), False),
        ("rnn_tanh_cell", "float64", (1e7, 1.0, 1.0, 1.0), True),  # other terms lose their digits
        ("scaled_dot_product_attention", "float32", (100.0, 1.0, 1.0, 1.0), True),
        ("scaled_dot_product_attention", "float32", (10.0, 1.0, 1.0, 1.0), False),
        ("orgqr", "float64", (100.0, 1.0, 1.0, 1.0), True),
        ("orgqr", "float64", (1.0, 1.0, 1.0, 1.0), False),
    ],
)
def test_sums_that_rounding_decides(op: str, dtype: str, values: tuple[float, ...], undefined: bool) -> None:
    tensor = RIGHT.make(Input("x0", dtype, (2, 2), values))
    given = [Ref("x0"), Ref("x0")]
    assert Undefined(RIGHT, Draft("jvp")).is_beyond(op, [tensor, tensor], given) == undefined


def test_sums_are_judged_in_every_dimension() -> None:
    for op, shape in itertools.product(sorted(SUMS), [(), (0,), (1,), (1, 1)]):
        tensor = RIGHT.make(Input("x0", "float32", shape, (1.0,) * math.prod(shape)))
        assert Undefined(RIGHT, Draft("jvp")).is_beyond(op, [tensor, tensor], [Ref("x0")] * 2) is False


@pytest.mark.parametrize(("dtype", "most"), [("float32", 5e3), ("float64", 1e12)])
def test_angles_of_matrix_exponentials_have_digits(dtype: str, most: float) -> None:
    for factor, undefined in ((0.5, False), (10.0, True)):
        tensor = RIGHT.make(Input("x0", dtype, (2, 2), (0.0, most * factor, -most * factor, 0.0)))
        assert Undefined(RIGHT, Draft("plain")).is_beyond("matrix_exp", [tensor], [Ref("x0")]) == undefined


def test_polynomials_have_few_terms() -> None:
    undefined = Undefined(RIGHT, Draft("plain"))
    assert undefined.is_beyond("special_hermite_polynomial_h", [], [0.5, 1000])
    assert not undefined.is_beyond("special_hermite_polynomial_h", [], [0.5, 3])
    degree = RIGHT.make(Input("x0", "int64", (1,), (1000,)))
    assert undefined.is_beyond("special_hermite_polynomial_h", [degree], [0.5, Ref("x0")])
    assert not undefined.is_beyond("special_hermite_polynomial_h", [degree], [Ref("x0"), 3])


def _recurrent(rows: int = 2, states: int = 1, sizes: tuple[int, ...] = ()) -> bool:
    """Return whether rnn_tanh is undefined for these rows of one weight and one state and these sizes of packed data."""
    shapes = {"x": (2, 3), "h": (1, 2, 2), "g": (states, 2, 2), "w": (2, 3), "u": (2, 2), "b": (rows,)}
    inputs = [Input(name, "float64", shape, (1.0,) * int(np.prod(shape))) for name, shape in shapes.items()]
    if sizes:
        inputs.append(Input("s", "int64", (len(sizes),), sizes))
    weights = [Ref("w"), Ref("u"), Ref("b"), Ref("b")]
    args = (Ref("x"), Ref("s"), Ref("h"), weights) if sizes else (Ref("x"), [Ref("h"), Ref("g")], weights)
    call = Call("rnn_tanh", "torch.rnn_tanh", "v0", (*args, True, 1, 0.0, False, False))
    return Undefined(RIGHT, Draft("plain")).is_undefined(call, RIGHT.start(Program(tuple(inputs), (call,))))


def test_recurrent_layers_have_weights_states_and_batches_of_one_layer() -> None:
    """For other arguments PyTorch reads beyond their memory."""
    assert not _recurrent()
    assert _recurrent(rows=1)
    assert _recurrent(states=2)
    assert not _recurrent(sizes=(1, 1))
    assert _recurrent(sizes=(2, 2))


def test_pivots_are_those_of_the_matrices() -> None:
    matrix = RIGHT.make(Input("x0", "float64", (2, 2), (1.0, 2.0, 3.0, 4.0)))
    pivots = {n: RIGHT.make(Input("x1", "int32", (n,), (1,) * n)) for n in (0, 2)}
    undefined = Undefined(RIGHT, Draft("plain"))
    assert undefined.is_beyond("lu_unpack", [matrix, pivots[0]], [Ref("x0"), Ref("x1")])
    assert not undefined.is_beyond("lu_unpack", [matrix, pivots[2]], [Ref("x0"), Ref("x1")])
