"""Explanations of differences by PyTorch's behaviour in similar programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fuzz import explain, slopes
from fuzz.compare import Difference
from fuzz.execute import Observation, Record
from fuzz.program import FLOATS, Call, Input, Named, Program, Ref
from fuzz.wider import rounded, widened, with_copies


def record(values: Any, dtype: str = "float32", requires_grad: bool = False) -> Record:
    array = np.array(values, dtype)
    return Record(dtype, array.shape, requires_grad, array)


def peer(p: Program) -> Observation:
    """`check` accepts empty sums and sums above a number, `view` its size, `matrix` two dimensions, and `add` everything.

    With `out=`, only results in float32 are supported.
    """
    (one, *outs), call = p.inputs, p.calls[-1]
    fails = (
        (call.op == "check" and one.values and sum(one.values) < call.args[1])
        or (call.op == "view" and one.shape[:1] != call.args[1:])
        or (call.op == "matrix" and len(one.shape) < 2)
    )
    if fails or (outs and "out" in call.kwargs and outs[0].dtype != "float32"):
        return Observation(error="ValueError: no", failed_at=0)
    final = {x.name: record(x.values, x.dtype) for x in p.inputs}
    return Observation([[record([1.0], one.dtype)]], final=final)


@pytest.mark.parametrize(
    ("shape", "op", "number", "sentence"),
    [
        ((0, 1), "check", 50, explain.NEEDS_ELEMENTS),
        ((0, 1), "check", 7, ""),
        ((1, 1), "check", 50, explain.NEEDS_ELEMENTS),
        ((0, 2), "check", 15, explain.NEEDS_ELEMENTS),
        ((0, 2), "check", 14, ""),
        ((2, 1), "check", 9, ""),
        ((0, 1), "view", 0, ""),
        ((0, 1), "view", 4, explain.NEEDS_ELEMENTS),
        ((0, 1), "add", 0, ""),
    ],
)
def test_arguments_that_are_refused_where_there_are_elements(
    shape: tuple[int, ...], op: str, number: int, sentence: str
) -> None:
    one = Input("x0", "float32", shape, (1.0,) * (shape[0] * shape[1]))
    program = Program((one,), (Call(op, f".{op}", "v0", (Ref("x0"), number)),))
    found = explain.explained(program, Difference("raises", op, "only here"), peer, peer)
    assert found.text.removeprefix("only here").removeprefix("; ") == sentence


@pytest.mark.parametrize("kind", ["raises", "dtype"])
@pytest.mark.parametrize(("op", "sentence"), [("matrix", explain.ONE_EXAMPLE), ("add", "")])
def test_arguments_that_are_refused_for_one_example(op: str, sentence: str, kind: str) -> None:
    one = Input("x0", "float32", (2, 1), (1.0, 1.0), batched=True)
    program = Program((one,), (Call(op, f".{op}", "v0", (Ref("x0"),)),), "vmap")
    found = explain.explained(program, Difference(kind, op, "only here"), peer, peer)
    assert found.text.removeprefix("only here").removeprefix("; ") == sentence


@pytest.mark.parametrize(
    ("shape", "text", "sentence"),
    [
        ((0, 2), "np.float64(nan), not np.float64(0.0)", explain.NO_ELEMENTS),
        ((0, 2), "np.float64(1.0), not np.float64(0.0)", ""),
        ((1, 2), "np.float64(nan), not np.float64(0.0)", ""),
    ],
)
def test_tangents_of_no_elements(shape: tuple[int, ...], text: str, sentence: str) -> None:
    moving = Input("x0", "float64", shape, (1.0,) * (shape[0] * shape[1]), requires_grad=True)
    still = Input("x1", "float64", (1,), (0.0,))
    program = Program((moving, still), (Call("add", ".add", "v0", (Ref("x0"), Ref("x1"))),), "jvp")

    def unknown(p: Program) -> Observation:
        return Observation(error="ValueError: no", failed_at=0)

    found = explain.explained(program, Difference("tangent", "add", text), unknown, unknown)
    assert found.text.removeprefix(text).removeprefix("; ") == sentence


def test_results_of_vmap_that_are_those_of_each_example() -> None:
    """PyTorch's vmap gives other values, but rushlight's gives the sums that PyTorch gives without vmap."""
    one = Input("x0", "float64", (2, 2), (1.0, 2.0, 4.0, 8.0), batched=True)
    program = Program((one,), (Call("sum", ".sum", "v0", (Ref("x0"),)),), "vmap")

    def run(sums: list[float]) -> explain.Run:
        def observe(p: Program) -> Observation:
            (x,) = p.inputs
            total = sums if p.mode == "vmap" else float(sum(x.values))
            array = np.array(x.values).reshape(x.shape)
            return Observation(final={"x0": record(array, x.dtype), "v0": record(total, x.dtype)})

        return observe

    for sums, sentence in (([3.0, 12.0], True), ([3.0, 13.0], False)):
        found = explain.explained(program, Difference("values", "sum", "v0: no"), run(sums), run([0.0, 0.0]))
        assert (explain.EACH_EXAMPLE in found.text) == sentence


@pytest.mark.parametrize(
    ("dtype", "out", "sentence"),
    [
        ("float32", "float64", explain.ONLY_OUT),
        ("int64", "float64", explain.ONLY_OUT),
        ("float64", "int64", ""),
        ("complex64", "float64", ""),
        ("bool", "int64", explain.ONLY_OUT),
        ("int64", "bool", ""),
    ],
)
def test_dtypes_that_are_refused_only_with_out(dtype: str, out: str, sentence: str) -> None:
    inputs = (Input("x0", dtype, (1,), (1,)), Input("x1", out, (1,), (1,)))
    program = Program(inputs, (Call("add.out", "torch.add", "v0", (Ref("x0"),), {"out": Ref("x1")}),))
    found = explain.explained(program, Difference("accepts", "add.out", "only in PyTorch"), peer, peer)
    assert found.text.removeprefix("only in PyTorch").removeprefix("; ") == sentence


# --- explanations by other dtypes, other inputs and finite differences ---


def one_call(*inputs: Input, mode: str = "plain", op: str = "f") -> Program:
    return Program(inputs, (Call(op, "torch." + op, "v0", tuple(Ref(one.name) for one in inputs)),), mode)


def library(f: Any, slope: Any = None, keeps: tuple[str, ...] = (), grows: bool = True) -> explain.Run:
    """Return a library that computes `f` of the inputs' arrays, except in the dtypes `keeps`, and the derivative `slope`."""

    def observe(p: Program) -> Observation:
        if keeps and {one.dtype for one in p.inputs} != set(keeps):
            return Observation(error="RuntimeError: expected other dtypes", failed_at=0)
        arrays = [np.array(one.values, dtype=one.dtype).reshape(one.shape) for one in p.inputs]
        final = {one.name: record(a, a.dtype.name) for one, a in zip(p.inputs, arrays, strict=True)}
        made = np.asarray(f(*arrays))
        final["v0"] = replace(record(made, made.dtype.name), requires_grad=grows and p.mode != "plain")
        seen = Observation([[final["v0"]]], final=final)
        if slope is not None and p.mode in ("backward", "jvp"):
            (x,) = arrays
            start = slopes.weights(x.shape)
            found = record(slope(x) * start, x.dtype.name)
            if p.mode == "backward":
                seen.gradients = [found]
            else:
                seen.tangents = [record(start, x.dtype.name), found]
        return seen

    return observe


def sentence(program: Program, kind: str, ours: explain.Run, theirs: explain.Run, text: str = "so") -> str:
    found = explain.explained(program, Difference(kind, "f", text), ours, theirs)
    return found.text.removeprefix(text).removeprefix("; ")


def test_digits_that_a_smaller_dtype_loses() -> None:
    program = one_call(Input("x0", "float32", (2,), (1e-4, 2.0)))

    def poor(x: Any) -> Any:
        return (x + x.dtype.type(1e8)) - x.dtype.type(1e8)

    same, wrong = library(lambda x: x), library(lambda x: x * x.dtype.type(1.5))
    assert sentence(program, "values", same, library(poor)) == explain.DIGITS
    assert sentence(program, "values", wrong, same) == ""
    assert sentence(program, "values", same, wrong) == ""
    double = one_call(Input("x0", "float64", (2,), (1e-4, 2.0)))
    assert sentence(double, "values", same, library(poor)) == ""

    def overflowing(last: float) -> explain.Run:
        return library(lambda x: np.append(x.astype(float)[:1] / 2, last if x.dtype == "float32" else 2.0))

    for last, sentence_ in ((-np.inf, explain.DIGITS), (2.0, "")):
        here = library(lambda x: np.append(x.astype(float)[:1] / 2, np.inf if x.dtype == "float32" else 2.0))
        assert sentence(program, "values", here, overflowing(last)) == sentence_


def test_differences_that_rounding_of_the_inputs_makes() -> None:
    """The sine of a large number has few correct digits; a jump is not a steep slope."""
    program = one_call(Input("x0", "float64", (2,), (1e9 + 0.1, 1e9 + 0.7)))

    def steep(x: Any) -> Any:
        return np.sin(x)

    def rounded_otherwise(x: Any) -> Any:
        return np.sin(x * (1 + 16 * np.finfo(float).eps))

    assert sentence(program, "values", library(rounded_otherwise), library(steep)) == explain.CONDITION
    assert sentence(program, "values", library(lambda x: np.sin(x) * 1.01), library(steep)) == ""
    jump = one_call(Input("x0", "float64", (1,), (1.0,)))
    assert sentence(jump, "values", library(lambda x: x * 0), library(lambda x: x >= 1.0)) == ""
    assert sentence(jump, "values", library(lambda x: x * 0), library(lambda x: np.floor(x))) == ""


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_are_rounded_to_a_dtype(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    values = (0.1, -2.7, 1e-3, 65519.0, 3.0, float("inf"), float("nan"))
    expected = torch.tensor(values, dtype=getattr(torch, dtype)).to(torch.float64).tolist()
    assert np.array_equal(rounded(values, dtype), expected, equal_nan=True)


@pytest.mark.parametrize(("dtype", "known"), [("bfloat16", True), ("float16", False), ("float32", False)])
def test_numbers_beside_a_half_type(dtype: str, known: bool) -> None:
    """Here, the result is the number; in PyTorch, the number is rounded to bfloat16."""
    inputs = (Input("x0", "float32", (), (-2.827,)), Input("x1", dtype, (1,), (1.0,)))
    program = Program(inputs, (Call("first", ".first", "v0", (Ref("x0"), Ref("x1"))),))

    def ours(p: Program) -> Observation:
        return Observation(final={"v0": record(p.inputs[0].values, "float64")})

    def theirs(p: Program) -> Observation:
        return Observation(final={"v0": record(rounded(p.inputs[0].values, "bfloat16"), "float64")})

    found = explain.explained(program, Difference("values", "first", "differs"), ours, theirs)
    assert found.text.endswith(explain.ROUNDED) == known


def test_conversions_are_widened_with_their_inputs() -> None:
    program = one_call(Input("x0", "float16", (1,), (0.1,)))
    calls = (
        Call("cfloat", ".cfloat", "v1", (Ref("x0"),)),
        Call("to", ".to", "v2", (Ref("x0"), Named("bfloat16"))),
    )
    wide = widened(replace(program, calls=calls))
    assert [one.dtype for one in wide.inputs] == ["float64"]
    assert [call.path for call in wide.calls] == [".cdouble", ".to"]
    assert wide.calls[1].args[1] == Named("float64")


def test_functions_of_integers_are_widened() -> None:
    of_integers = one_call(Input("x0", "int64", (1,), (3,)))
    assert widened(of_integers) == replace(of_integers, default_dtype="float64")
    of_doubles = one_call(Input("x0", "float64", (1,), (3.0,)))
    assert widened(of_doubles) == of_doubles


def test_integers_that_wrap_around() -> None:
    program = one_call(Input("x0", "uint8", (2,), (255, 3)))
    right = library(lambda x: x / (1.0 + x.astype(float)))
    wraps = library(lambda x: x.astype(float) / (x + x.dtype.type(1)).clip(1))
    assert sentence(program, "values", right, wraps) == explain.WIDE_INTEGERS
    assert sentence(program, "values", wraps, right) == ""


def test_two_dtypes_that_are_refused() -> None:
    program = one_call(Input("x0", "float32", (1,), (1.5,)), Input("x1", "float64", (1,), (0.25,)))
    strict = library(lambda x, y: x + y, keeps=("float64",))
    assert sentence(program, "accepts", library(lambda x, y: x + y), strict) == explain.ONE_DTYPE
    assert sentence(program, "accepts", library(lambda x, y: x - y), strict) == ""


def test_two_dtypes_whose_gradient_is_refused() -> None:
    """PyTorch refuses the backward pass with a bool argument, and gives rushlight's gradient with floats."""
    inputs = (Input("x0", "float32", (1,), (1.0,), requires_grad=True), Input("x1", "bool", (1,), (False,)))
    program = one_call(*inputs, mode="backward")

    def dividing(gradient: float, strict: bool) -> explain.Run:
        def observe(p: Program) -> Observation:
            final = {one.name: record(one.values, one.dtype) for one in p.inputs}
            if strict and any(one.dtype == "bool" for one in p.inputs):
                return Observation(error="RuntimeError: result type Float", failed_at="backward", final=final)
            return Observation(final=final, gradients=[record([gradient])])

        return observe

    inf = float("inf")
    assert (
        sentence(program, "gradient accepts", dividing(inf, False), dividing(inf, True)) == explain.ONE_DTYPE
    )
    assert sentence(program, "gradient accepts", dividing(1.0, False), dividing(inf, True)) == ""


@pytest.mark.parametrize("mode", ["backward", "jvp"])
def test_derivatives_beside_a_tiny_number(mode: str) -> None:
    """A step of the usual length would miss the slope at this point."""
    kind = "gradient" if mode == "backward" else "tangent"
    program = one_call(Input("x0", "float64", (1,), (3e-9,), requires_grad=True), mode=mode)

    def steep(x: Any) -> Any:
        return np.minimum(x, 1e-8) * 1e8

    ours, theirs = library(steep, lambda x: 1e8 * (x < 1e-8)), library(steep, lambda x: 0.7e8 * (x < 1e-8))
    assert sentence(program, kind, ours, theirs) == explain.ITS_VALUES
    assert sentence(program, kind, theirs, ours) == ""


@pytest.mark.parametrize("mode", ["backward", "jvp"])
def test_derivatives_are_those_of_the_values(mode: str) -> None:
    kind = "gradient" if mode == "backward" else "tangent"
    program = one_call(Input("x0", "float64", (2,), (0.5, -2.0), requires_grad=True), mode=mode)
    right = library(lambda x: x**3, lambda x: 3 * x**2)
    wrong = library(lambda x: x**3, lambda x: 2 * x**2)
    assert sentence(program, kind, right, wrong) == explain.ITS_VALUES
    assert sentence(program, kind, wrong, right) == ""
    detached = replace(program, calls=(replace(program.calls[0], op="detach"),))
    assert sentence(detached, kind, right, wrong) == ""


def test_gradients_that_pytorch_refuses_wherever_the_point_is() -> None:
    infinite = Input("x0", "float64", (2,), (float("-inf"), 2.0), requires_grad=True)
    program = one_call(infinite, mode="backward")
    right, wrong = (library(lambda x: x**2, lambda x, n=n: n * x) for n in (2, 3))

    def refusing(always: bool) -> explain.Run:
        def observe(p: Program) -> Observation:
            seen = right(p)
            fails = p.mode == "backward" and (always or not np.isfinite(p.inputs[0].values).all())
            return (
                replace(seen, gradients=[], error="RuntimeError: no", failed_at="backward") if fails else seen
            )

        return observe

    assert sentence(program, "gradient accepts", right, refusing(True)) == explain.ITS_VALUES
    assert sentence(program, "gradient accepts", wrong, refusing(True)) == ""
    assert sentence(program, "gradient accepts", right, refusing(False)) == ""


def test_gradients_beside_results_that_are_no_numbers() -> None:
    """Elements without a value have no slope; the slopes of the other elements count."""
    program = one_call(Input("x0", "float64", (2,), (4.0, 0.5), requires_grad=True), mode="backward")

    def squares(factor: float, error: str = "") -> explain.Run:
        numbers = library(
            lambda x: np.where(x > 1, np.nan, x**2), lambda x: np.where(x > 1, np.nan, factor * x)
        )

        def observe(p: Program) -> Observation:
            seen = numbers(p)
            fails = error and p.mode == "backward"
            return replace(seen, gradients=[], error=error, failed_at="backward") if fails else seen

        return observe

    right, wrong, none = squares(2.0), squares(3.0), squares(2.0, "RuntimeError: no")
    assert sentence(program, "gradient accepts", right, none) == explain.ITS_VALUES
    assert sentence(program, "gradient accepts", wrong, none) == ""
    assert sentence(program, "gradient", right, wrong) == explain.ITS_VALUES
    assert sentence(program, "gradient", wrong, right) == ""


def test_any_slope_at_a_kink_is_right_but_none_beyond() -> None:
    program = one_call(Input("x0", "float64", (1,), (0.0,), requires_grad=True), mode="backward")
    half, one, two = (library(abs, lambda x, s=s: s + 0 * x) for s in (0.5, 1.0, 2.0))
    assert sentence(program, "gradient", half, one) == ""
    assert sentence(program, "gradient", half, two) == explain.ITS_VALUES
    assert sentence(program, "gradient", two, half) == ""


def test_slopes_beside_a_jump() -> None:
    program = one_call(Input("x0", "float64", (1,), (2.0,), requires_grad=True), mode="backward")
    jump = library(lambda x: x + (x > 2), lambda x: 1.0 + 2 * (x > 2))
    closed = library(lambda x: x + (x > 2), lambda x: 1.0 + 2 * (x >= 2))
    other = library(lambda x: x + (x > 2), lambda x: 5.0 + 0 * x)
    assert sentence(program, "gradient", jump, closed) == explain.BESIDE
    assert sentence(program, "gradient", closed, jump) == explain.BESIDE
    assert sentence(program, "gradient", other, jump) == ""


@pytest.mark.parametrize(("slope", "expected"), [(0.5, explain.BESIDE), (-1.0, explain.BESIDE), (2.0, "")])
def test_slopes_between_those_beside_a_kink(slope: float, expected: str) -> None:
    program = one_call(Input("x0", "float64", (1,), (0.0,), requires_grad=True), mode="backward")
    ours = library(abs, lambda x: slope + 0 * x)
    assert sentence(program, "gradient", ours, library(abs, np.sign)) == expected
    # Near a pole slopes take all values, so nothing is excused.
    pole = library(abs, lambda x: 1 / np.where(x == 0, 1, x))
    assert sentence(program, "gradient", library(abs, lambda x: 3.0 + 0 * x), pole) == ""


def test_results_without_slopes_are_left_out_if_the_libraries_agree() -> None:
    right, wrong, zero = record([2.0], "float64"), record([3.0], "float64"), record([0.0], "float64")
    slope, none = np.array([2.0 + 0j]), np.array([np.nan + 0j])
    sides = [(slope, slope), (none, none)]
    assert slopes._distance([right, zero], [wrong, zero], sides) == 0
    assert slopes._distance([wrong, zero], [right, zero], sides) > 0.1
    assert slopes._distance([right, zero], [wrong, right], sides) == np.inf
    # Derivatives that are not finite in both libraries are left out, too, although the slopes are finite.
    nan = record([np.nan], "float64")
    assert slopes._distance([right, nan], [wrong, nan], [(slope, slope)] * 2) == 0
    assert slopes._distance([right, nan], [wrong, zero], [(slope, slope)] * 2) == np.inf


def test_only_cuts_of_values_with_derivatives_count() -> None:
    x, y = Input("x0", "float64", (1,), (2.0,), requires_grad=True), Input("x1", "float64", (1,), (2.0,))
    double = Call("mul", ".mul", "v1", (Ref("x0"), 2.0))
    for name, cut in (("x0", True), ("x1", False), ("v1", True)):
        last = Call("detach", ".detach", "v2", (Ref(name),))
        assert slopes._is_cut(Program((x, y), (double, last), mode="backward")) == cut
    write = Call("add_", ".add_", "v1", (Ref("x1"), Ref("x0")))
    assert slopes._is_cut(Program((x, y), (write, Call("detach", ".detach", "v2", (Ref("x1"),)))))


def test_gradients_with_integers_that_wrap_around() -> None:
    integer = Input("x1", "uint8", (1,), (1,))

    def peer(slope: Any) -> explain.Run:
        def observe(p: Program) -> Observation:
            x, n = (np.array(one.values, dtype=one.dtype) for one in p.inputs)
            final = {"x0": record(x, "float32"), "x1": record(n, n.dtype.name), "v0": record([np.inf])}
            return Observation([[final["v0"]]], final=final, gradients=[record(slope(n), "float32")])

        return observe

    program = one_call(Input("x0", "float32", (1,), (1.0,), requires_grad=True), integer, mode="backward")
    right, wraps = peer(lambda n: -n.astype(float)), peer(lambda n: (-n).astype(float))
    assert sentence(program, "gradient", right, wraps) == explain.WIDE_INTEGERS
    assert sentence(program, "gradient", peer(lambda n: n * 0.5), wraps) == ""


def test_tangents_that_go_with_gradients() -> None:
    """At a kink, where finite differences do not help, PyTorch's two modes differ."""
    program = one_call(Input("x0", "float64", (1,), (0.0,), requires_grad=True), mode="jvp")
    half, one = (library(abs, lambda x, s=s: s + 0 * x) for s in (0.5, 1.0))

    def theirs(p: Program) -> Any:
        return half(p) if p.mode == "backward" else one(p)

    assert sentence(program, "tangent", half, theirs) == explain.IN_REVERSE
    assert sentence(program, "tangent", one, theirs) == ""


@pytest.mark.parametrize(
    ("f", "text", "expected"),
    [
        (lambda x: x * 0 + 1, "False, not True", explain.INDEPENDENT),
        (np.floor, "False, not True", ""),
        (np.floor, "True, not False", explain.DEPENDENT),
        (lambda x: x * 0 + 1, "True, not False", ""),
        (lambda x: x[:0], "True, not False", explain.NO_ELEMENTS),
    ],
)
def test_results_that_do_not_depend_on_inputs(f: Any, text: str, expected: str) -> None:
    program = one_call(Input("x0", "float64", (2,), (0.5, 0.25), requires_grad=True), mode="backward")
    assert sentence(program, "requires_grad", library(f), library(f), text) == expected


@pytest.mark.parametrize(("sizes", "known"), [((0, 2), True), ((2, 0), False), ((0, 0), True)])
def test_results_of_arguments_without_elements(sizes: tuple[int, int], known: bool) -> None:
    """Only the argument that requires grad counts, here the first of a list that the last call reads."""
    parts = [record(np.ones(n), "float64", requires_grad=i == 0) for i, n in enumerate(sizes)]

    def run(p: Program) -> Observation:
        total = record(float(sum(sum(one.values) for one in p.inputs)), "float64")
        return Observation([[total]], final={"v0[0]": parts[0], "v0[1]": parts[1], "v1": total})

    one = Input("x0", "float64", (2,), (0.5, 0.25), requires_grad=True)
    call = Call("trapezoid", "torch.trapezoid", "v1", (Ref("v0[0]"), Ref("v0[1]")))
    program = Program((one,), (call,), "backward")
    found = explain.dependence(program, Difference("requires_grad", "trapezoid", "True, not False"), run)
    assert (found == explain.NO_ELEMENTS) == known


@pytest.mark.parametrize(
    ("here", "turns"), [((3.3, -1.0), True), ((3.3, -1.1), False), ((3.3, -1.0 + 4 * np.pi), False)]
)
def test_logarithms_that_differ_by_whole_turns(here: tuple[float, float], turns: bool) -> None:
    """Only the values that differ must be principal values."""
    program = one_call(Input("x0", "complex128", (2,), (1.0, 1.0)))
    ours, theirs = (
        (lambda p, angles=angles: Observation(final={"v0": record(1j * np.array(angles), "complex128")}))
        for angles in (here, (3.3, -1.0 + 2 * np.pi))
    )
    assert explain.differs_by_turns(program, ours, theirs) == turns


def test_tangents_of_other_results_are_not_compared_with_gradients() -> None:
    program = one_call(Input("x0", "float64", (1,), (1.0,), requires_grad=True), mode="jvp")
    one, two = record([1.0], "float64"), record([2.0], "float64")
    ours = Observation(final={"v0": one, "v1": one}, tangents=[one, two])
    theirs = Observation(final={"v0": one}, tangents=[one], gradients=[two])
    assert not slopes.as_in_reverse(program, lambda p: ours, lambda p: theirs)


def failing(error: str = "RuntimeError: no", at: Any = 0) -> Observation:
    return Observation(error=error, failed_at=at)


@pytest.mark.parametrize(
    ("moves", "plain", "known"),
    [
        (False, True, True),  # both libraries refuse a tangent, which ended at an earlier call in PyTorch
        (True, True, False),
        (False, False, False),  # rushlight also raises without a tangent
    ],
)
def test_calls_that_both_refuse_where_arguments_have_tangents(moves: bool, plain: bool, known: bool) -> None:
    one = Input("x0", "float64", (1,), (1.0,), requires_grad=True)
    calls = (
        Call("special", "torch.special", "v0", (Ref("x0"),)),
        Call("counts", "torch.counts", "v1", (Ref("v0"),)),
    )
    program = Program((one,), calls, "jvp")
    step = record([1.0], "float64")

    def refuses(p: Program) -> bool:
        return p.mode == "jvp" and p.calls[-1].op == "counts" and p.inputs[0].requires_grad

    def ours(p: Program) -> Observation:
        if refuses(p) or (p.calls[-1].op == "counts" and not plain):
            return failing("NotImplementedError: no tangent", len(p.calls) - 1)
        return Observation([[step]] * len(p.calls), final={"x0": step})

    def theirs(p: Program) -> Observation:
        if refuses(p) and len(p.calls) == 1 and not moves:
            return failing("NotImplementedError: no forward mode")
        return Observation([[step]] * len(p.calls), final={"x0": step})

    assert (sentence(program, "raises", ours, theirs) == explain.NO_DERIVATIVE) == known


@pytest.mark.parametrize(
    ("value", "known"), [(float("nan"), True), (float("inf"), True), (1e15, True), (1e6, False)]
)
def test_singular_matrices_whose_inverse_has_no_meaning(value: float, known: bool) -> None:
    def theirs(p: Program) -> Observation:
        step = record([value, 1.0], "float64")
        return Observation(steps=[[step]], final={"v0": step})

    def ours(p: Program) -> Observation:
        return failing("LinAlgError: the matrix is singular")

    program = one_call(Input("x0", "float64", (2,), (1.0, 2.0)))
    assert (sentence(program, "raises", ours, theirs) == explain.SINGULAR) == known


def test_only_arguments_with_derivatives_have_tangents() -> None:
    """A tangent of another argument, which PyTorch refuses, does not explain a refused tangent of the first one."""
    inputs = (
        Input("x0", "float64", (1,), (1.0,), requires_grad=True),
        Input("x1", "float64", (1,), (1.0,)),
    )
    calls = (
        Call("sin", "torch.sin", "v0", (Ref("x0"),)),
        Call("cos", "torch.cos", "v1", (Ref("x1"),)),
        Call("loss", "torch.loss", "v2", (Ref("v0"), Ref("v1"), Ref("x1"))),
    )
    program = Program(inputs, calls, "jvp")
    step, tried = record([1.0], "float64"), []

    def observe(p: Program) -> Observation:
        if len(p.calls) == 1:
            tried.append({one.name: one.requires_grad for one in p.inputs})
        return Observation([[step]] * len(p.calls), final={"x0": step})

    def ours(p: Program) -> Observation:
        return failing("NotImplementedError: no", len(p.calls) - 1) if p.mode == "jvp" else observe(p)

    assert sentence(program, "raises", ours, observe) == ""
    assert {"x0_0": True, "x1_0": False, "x1": False} in tried


def test_integers_that_are_not_floats_where_they_should_be() -> None:
    """The mean of large integers overflows in PyTorch, but the mean of the same floats does not. Other numbers are wrong."""
    program = one_call(Input("x0", "int64", (2,), (2**62, 2**62)))
    right, wraps, wrong = (
        library(f)
        for f in (
            lambda x: x.astype(float).sum() / 2,
            lambda x: np.float64(x.sum() / 2),
            lambda x: x.astype(float).sum(),
        )
    )
    assert sentence(program, "values", right, wraps) == explain.ONE_DTYPE
    assert sentence(program, "values", wrong, wraps) == ""
    assert sentence(program, "values", wraps, right) == ""


def test_indices_of_any_integer_dtype() -> None:
    program = one_call(Input("x0", "int64", (2,), (3, 4)), Input("x1", "int16", (1,), (1,)))
    strict = library(lambda x, i: x[i], keeps=("int64",))
    assert sentence(program, "accepts", library(lambda x, i: x[i]), strict) == explain.WIDE_INTEGERS
    assert sentence(program, "accepts", library(lambda x, i: x[i - 1]), strict) == ""


def refusing(f: Any, accepts: Any) -> explain.Run:
    """Return a library that computes `f` of arrays of which `accepts` is true."""

    def observe(p: Program) -> Observation:
        arrays = [np.array(one.values, one.dtype).reshape(one.shape) for one in p.inputs]
        return library(f)(p) if accepts(*arrays) else failing()

    return observe


def test_arguments_that_broadcast() -> None:
    program = one_call(
        Input("x0", "float64", (2, 1), (1.0, 2.0)), Input("x1", "float64", (3,), (3.0, 4.0, 5.0))
    )
    strict = refusing(lambda x, y: x * y, lambda x, y: x.shape == y.shape)
    assert sentence(program, "accepts", library(lambda x, y: x * y), strict) == explain.ONE_SHAPE
    assert sentence(program, "accepts", library(lambda x, y: x + y), strict) == ""
    apart = one_call(Input("x0", "float64", (2,), (1.0, 2.0)), Input("x1", "float64", (3,), (3.0, 4.0, 5.0)))
    assert sentence(apart, "accepts", library(lambda x, y: x[0] * y), strict) == ""


def test_tensors_of_no_dimension_have_one() -> None:
    program = one_call(Input("x0", "float64", (), (3.0,)))
    strict = refusing(lambda x: np.repeat(x, 2), lambda x: x.ndim > 0)
    assert sentence(program, "accepts", library(lambda x: np.repeat(x, 2)), strict) == explain.ONE_DIMENSION
    assert sentence(program, "accepts", library(lambda x: np.repeat(x, 3)), strict) == ""
    assert sentence(program, "accepts", library(lambda x: np.repeat(x + 1, 2)), strict) == ""


def test_functions_of_integers_lose_the_digits_of_floats() -> None:
    """The program with floats counts only if both libraries give the same results for floats."""
    large = one_call(Input("x0", "int32", (1,), (123456789,)))

    def poor(x: Any) -> Any:
        return np.sin(x.astype(x.dtype if x.dtype == "float64" else "float32") * (1 + 1e-16))

    def right(x: Any) -> Any:
        exact = np.sin((x if x.dtype == "float64" else x.astype("float32")).astype("float64"))
        return exact if x.dtype == "float64" else exact.astype("float32")

    here = library(right)
    rough = library(lambda x: poor(x) + (x.dtype != "float64") * np.float32(0.5))
    assert sentence(large, "values", here, rough) == explain.DIGITS
    assert sentence(large, "values", rough, here) == ""
    for_floats = library(lambda x: poor(x) + (x.dtype == "float32") * np.float32(0.5))
    off = library(lambda x: right(x) + np.float32(x.dtype == "int32"))
    assert sentence(large, "values", off, for_floats) == ""


def test_a_conversion_that_does_nothing_in_float64_is_a_copy() -> None:
    one = Input("x0", "float32", (1,), (1.0,), requires_grad=True)
    calls = (
        Call("to", ".to", "v0", (Ref("x0"), Named("float64"))),
        Call("add_", ".add_", "v1", (Ref("v0"), 2)),
        Call("ones", "torch.ones", "v2", ((2,),)),
    )
    program = widened(Program((one,), calls, "backward"))
    assert program.default_dtype == "float64"
    copied = with_copies(program)
    assert [call.op for call in copied.calls] == ["to", "clone", "add_", "ones"]
    assert copied.calls[1].result == "v0"

    def writing(slope: float) -> explain.Run:
        """Return a library that refuses to write to a leaf, which `to` returns without a copy."""
        numbers = library(lambda x: x**2, lambda x: slope * x)

        def observe(p: Program) -> Observation:
            ops = [call.op for call in p.calls]
            narrow = p.inputs[0].dtype == "float32"
            return (
                numbers(p) if narrow or "clone" in ops else failing("RuntimeError: a leaf", ops.index("add_"))
            )

        return observe

    assert (
        sentence(Program((one,), calls, "backward"), "gradient", writing(2), writing(3)) == explain.ITS_VALUES
    )
    assert sentence(Program((one,), calls, "backward"), "gradient", writing(3), writing(2)) == ""


def test_digits_of_a_conversion_that_is_written_to() -> None:
    """In float64 the conversion returns a leaf, which cannot be written to, so it is compared with a copy."""
    calls = (
        Call("half", ".half", "v0", (Ref("x0"),)),
        Call("sinc_", ".sinc_", "v1", (Ref("v0"),)),
    )
    program = Program((Input("x0", "float64", (1,), (1.0,), requires_grad=True),), calls, "backward")

    def writing(small: float) -> explain.Run:
        """Return a library whose gradient is 2 in float64, and refuses to write to a leaf."""

        def observe(p: Program) -> Observation:
            narrow, ops = p.calls[0].path == ".half", [call.op for call in p.calls]
            if not narrow and "clone" not in ops:
                return failing("RuntimeError: a leaf", 1)
            step = record([1.0], "float64")
            steps = [[step] for _ in ops]
            return Observation(steps=steps, gradients=[record([small if narrow else 2.0], "float64")])

        return observe

    assert sentence(program, "gradient", writing(2.0), writing(1.5)) == explain.DIGITS
    assert sentence(program, "gradient", writing(1.5), writing(2.0)) == ""


def test_gradients_that_are_refused_at_every_point() -> None:
    """At 0 the slope is not finite; elsewhere PyTorch refuses the gradient, too, and rushlight's is right, or is not."""
    program = one_call(Input("x0", "float64", (1,), (0.0,), requires_grad=True), mode="backward")

    def roots(factor: float) -> explain.Run:
        def slope(x: Any) -> Any:
            with np.errstate(all="ignore"):
                return factor / np.sqrt(x)

        return library(lambda x: np.sqrt(np.maximum(x, 0)), slope)

    def none(p: Program) -> Observation:
        seen = roots(0.5)(p)
        return (
            replace(seen, gradients=[], error="RuntimeError: no", failed_at="backward")
            if p.mode != "plain"
            else seen
        )

    assert sentence(program, "gradient accepts", roots(0.5), none) == explain.ITS_VALUES
    assert sentence(program, "gradient accepts", roots(0.7), none) == ""
    assert (
        sentence(program, "gradient accepts", roots(0.5), lambda p: failing()) == ""
    )  # the call, not its gradient


def test_gradients_that_are_right_where_there_are_values() -> None:
    """For positive numbers there are gradients but no values, so only other inputs show which gradient is right."""
    program = one_call(Input("x0", "float64", (1,), (1.0,), requires_grad=True), mode="backward")
    right, wrong = (library(lambda x: np.where(x > 0, np.nan, x**2), lambda x, n=n: n * x) for n in (2, 3))

    def none(p: Program) -> Observation:
        return failing(at="backward") if p.mode == "backward" else right(p)

    assert sentence(program, "gradient accepts", right, with_values(none, right)) == explain.ITS_VALUES
    assert sentence(program, "gradient accepts", wrong, with_values(none, right)) == ""


def with_values(run: explain.Run, values: explain.Run) -> explain.Run:
    """Return a library that fails as the first one, and has computed the values of the second one before."""

    def observe(p: Program) -> Observation:
        seen = run(p)
        return (
            replace(values(p), gradients=[], error=seen.error, failed_at=seen.failed_at)
            if seen.error
            else seen
        )

    return observe


@pytest.mark.parametrize(
    ("here", "between", "known"),
    [
        ((np.nan, 2.0), np.inf, True),
        ((np.nan, 2.0), 1.0, False),  # the gradient must be finite
        ((np.nan, np.nan), np.inf, True),  # a sum of 2 and of zero times infinity
        ((1.0, 2.0), np.inf, False),
    ],
)
def test_zero_times_infinity(here: tuple[float, float], between: float, known: bool) -> None:
    one = Input("x0", "float64", (2,), (-1.0, 2.0), requires_grad=True)
    calls = (
        Call("neg", "torch.neg", "v0", (Ref("x0"),)),
        Call("pow", "torch.pow", "v1", (Ref("v0"), Ref("x0"))),
    )
    program = Program((one,), calls, "backward")
    step = record([1.0, 1.0], "float64")

    def peer(gradient: Any) -> explain.Run:
        def observe(p: Program) -> Observation:
            found = gradient if len(p.calls) == 2 else (between, 1.0)
            return Observation([[step]] * len(p.calls), gradients=[record(found, "float64")])

        return observe

    text = "number 0: np.float64(nan), not np.float64(0.0)"
    assert (sentence(program, "gradient", peer(here), peer((0.0, 2.0)), text) == explain.ZEROS) == known


@pytest.mark.parametrize(("between", "known"), [(np.inf, True), (np.nan, True), (1.0, False)])
def test_zero_times_an_infinite_tangent(between: float, known: bool) -> None:
    one = Input("x0", "float64", (2,), (0.0, 2.0), requires_grad=True)
    calls = (
        Call("log", "torch.log", "v0", (Ref("x0"),)),
        Call("cumprod", "torch.cumprod", "v1", (Ref("v0"), 0)),
    )
    program = Program((one,), calls, "jvp")
    step = record([1.0, 1.0], "float64")

    def peer(tangent: Any) -> explain.Run:
        def observe(p: Program) -> Observation:
            tangents = [record([between, 1.0], "float64"), tangent]
            return Observation([[step]] * len(p.calls), tangents=tangents[: len(p.calls)])

        return observe

    here, there = record([np.nan, 1.0], "float64"), record([0.0, 1.0], "float64")
    assert explain.as_zero_times_infinity(program, "tangent", peer(here), peer(there)) == known
    if known:
        text = "number 1: np.float64(nan), not np.float64(0.0)"
        assert sentence(program, "tangent", peer(here), peer(there), text) == explain.ZEROS
