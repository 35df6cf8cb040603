"""Explanations of differences by other code of PyTorch, which must not explain a wrong result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fuzz import beside
from fuzz.beside import sentences
from fuzz.compare import NOT_FINITE, Difference
from fuzz.execute import Observation, Record
from fuzz.explain import explained
from fuzz.program import Call, Input, Program, Ref

NAN, INF = float("nan"), float("inf")


def record(values: Any, dtype: str = "float64") -> Record:
    array = np.array(values, dtype)
    return Record(dtype, array.shape, False, array)


def computing(f: Callable[..., Any], dtype: str = "float64") -> beside.Run:
    """Return a library whose programs are one call of `f` on the inputs' arrays, which may raise the program's error."""

    def run(p: Program) -> Observation:
        arrays = [np.array(one.values, one.dtype).reshape(one.shape) for one in p.inputs]
        try:
            result = record(f(*arrays), dtype)
        except ValueError as error:
            return Observation(error=f"ValueError: {error}", failed_at=0)
        final = {one.name: record(a, one.dtype) for one, a in zip(p.inputs, arrays, strict=True)}
        return Observation([[result]], final={**final, "v0": result})

    return run


def call(*inputs: Input, mode: str = "plain", path: str = "torch.f", **kwargs: Any) -> Program:
    args = tuple(Ref(one.name) for one in inputs)
    return Program(inputs, (Call("f", path, "v0", args, kwargs),), mode)


def said(program: Program, kind: str, ours: Any, theirs: Any, other: dict[str, Any], text: str = "no") -> str:
    """Return the explanation of a difference between two libraries. `other` is the second one's other code."""

    def otherwise(way: str, p: Program) -> Observation:
        return other[way](p) if way in other else Observation(error="ImportError: not there")

    found = Difference(kind, "f", text)
    held = (text for holds, text in sentences(program, found, ours, theirs, otherwise) if holds())
    return next(held, "")


X = Input("x0", "float64", (2,), (1.0, 4.0))
RIGHT, DOUBLE, TRIPLE = (computing(lambda x, n=n: n * x) for n in (1, 2, 3))


@pytest.mark.parametrize("way", beside.WAYS)
def test_other_code_that_gives_what_is_here(way: str) -> None:
    assert said(call(X), "values", RIGHT, DOUBLE, {way: RIGHT}) == beside.WAYS[way]
    assert said(call(X), "values", TRIPLE, DOUBLE, {way: RIGHT}) == ""
    assert said(call(X), "values", TRIPLE, DOUBLE, {way: DOUBLE}) == ""
    # Other code may copy, which would wrongly explain a missing view.
    written = call(X, path=".f_")
    assert said(written, "values", RIGHT, RIGHT, {way: RIGHT}) in ("", beside.NEW_TENSOR)


def test_integers_that_are_computed_in_a_wider_dtype() -> None:
    large = call(Input("x0", "int32", (1,), (10**9,)))
    right, narrow, wrong = (computing(lambda x, n=n: np.cos(x * n), "float32") for n in (1.0, 1.0000001, 2.0))
    exact = computing(lambda x: np.cos(x * 1.0))

    def theirs(usual: beside.Run) -> beside.Run:
        return lambda p: exact(p) if p.default_dtype == "float64" else usual(p)

    assert said(large, "values", right, theirs(narrow), {}) == beside.WIDE_DEFAULT
    assert said(large, "values", wrong, theirs(narrow), {}) == ""
    assert said(large, "values", narrow, theirs(right), {}) == ""


def test_results_that_are_conjugated_later() -> None:
    """The explanation applies to programs that write, and to no others."""
    assert said(call(X, path=".f_"), "alias", RIGHT, DOUBLE, {"resolved": RIGHT}) == beside.RESOLVED
    assert said(call(X, path=".f_"), "alias", TRIPLE, DOUBLE, {"resolved": RIGHT}) == ""
    assert said(call(X), "alias", RIGHT, DOUBLE, {"resolved": RIGHT}) == ""


def test_sizes_and_dtypes_of_meta_tensors() -> None:
    """The form of every result is compared, in the mode in which the difference was found."""
    wide, narrow = computing(lambda x: x), computing(lambda x: x, "float32")
    assert said(call(X), "dtype", wide, narrow, {"meta": wide}) == beside.META
    assert said(call(X), "dtype", narrow, wide, {"meta": wide}) == ""

    def otherwise_in_jvp(p: Program) -> Observation:
        return (narrow if p.mode == "jvp" else wide)(p)

    assert said(call(X, mode="jvp"), "dtype", otherwise_in_jvp, wide, {"meta": wide}) == ""


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ("RuntimeError: sizes must match", True),
        ("NotImplementedError: no kernel", False),
        ("RuntimeError: Tensor.item() cannot be called on meta tensors", False),
        ("RuntimeError: f is not supported", False),
        ("AssertionError: ", False),
    ],
)
def test_arguments_that_other_code_refuses(error: str, refused: bool) -> None:
    def refusing(p: Program) -> Observation:
        return Observation(error=error, failed_at=0)

    here = computing(lambda x: (_ for _ in ()).throw(ValueError("no")))
    assert (said(call(X), "raises", here, RIGHT, {"meta": refusing}) == beside.REFUSED) == refused
    later = replace(refusing(call(X)), failed_at=1)
    assert said(call(X), "raises", here, RIGHT, {"meta": lambda p: later}) == ""
    assert said(call(X), "raises", here, RIGHT, {"meta": RIGHT}) == ""


def test_values_that_pytorch_has_without_derivatives() -> None:
    def other_in_jvp(p: Program) -> Observation:
        return (DOUBLE if p.mode == "jvp" else RIGHT)(p)

    program = call(X, mode="jvp")
    assert said(program, "values", RIGHT, other_in_jvp, {}) == beside.WITHOUT_DERIVATIVES
    assert said(program, "values", TRIPLE, other_in_jvp, {}) == ""
    assert said(program, "values", other_in_jvp, RIGHT, {}) == ""


def test_what_is_written_is_what_a_new_tensor_would_have() -> None:
    def other_in_place(p: Program) -> Observation:
        return (DOUBLE if p.calls[-1].writes else RIGHT)(p)

    for program in (call(X, path=".f_"), call(X, out=Ref("x0"))):
        assert said(program, "values", RIGHT, other_in_place, {}) == beside.NEW_TENSOR
        assert said(program, "values", TRIPLE, other_in_place, {}) == ""
        assert said(program, "values", other_in_place, RIGHT, {}) == ""
    integers = computing(lambda x: x, "int64")
    halves = computing(lambda x: x / 2)
    assert said(call(X, path=".f_"), "values", integers, halves, {}) == ""


EMPTY = Input("x0", "float64", (0, 2), ())


@pytest.mark.parametrize(
    ("here", "there", "explained_by_rule"),
    [
        (lambda x: x[:, None], lambda x: x[:, None] if x.size else x, True),
        (lambda x: x, lambda x: x[:, None] if x.size else x, False),  # another rule for elements
        (lambda x: x[:-1], lambda x: x[:-1] if x.size else x[:, None], True),
        (lambda x: x if x.size else x[:, :0], lambda x: x, False),
        (
            lambda x: x[:0].sum(0),
            lambda x: x[:0].sum(0)[None],
            False,
        ),  # there are elements, which must be right
        (lambda x: x[:, None] if x.size else x[:, None, :1], lambda x: x[:, None] if x.size else x, False),
    ],
)
def test_sizes_that_are_those_of_more_elements(here: Any, there: Any, explained_by_rule: bool) -> None:
    text = said(call(EMPTY), "shape", computing(here), computing(there), {})
    assert (text == beside.MORE_ELEMENTS) == explained_by_rule


def test_what_is_accepted_of_no_elements() -> None:
    def refusing(x: np.ndarray) -> np.ndarray:
        if not x.size:
            raise ValueError("no")
        return x

    assert said(call(EMPTY), "accepts", RIGHT, computing(refusing), {}) == beside.MORE_ELEMENTS
    assert said(call(EMPTY), "accepts", DOUBLE, computing(refusing), {}) == ""
    # A result with elements is computed from an empty input.
    ours = computing(lambda x: x if x.size else np.zeros(3))
    assert said(call(EMPTY), "accepts", ours, computing(refusing), {}) == ""


@pytest.mark.parametrize(("same", "known"), [(True, True), (False, False)])
def test_writes_to_results_that_are_leaves_where_there_are_no_elements(same: bool, known: bool) -> None:
    """If there are no elements, PyTorch returns its argument, which must not be written."""
    leaf = Input("x0", "float64", (0,), (), requires_grad=True)
    calls = (Call("diff", ".diff", "v0", (Ref("x0"),)), Call("f", "[]=", "s1", (Ref("v0"), 0, Ref("x0"))))
    program = Program((leaf,), calls, "backward")

    def writing(returns_it: bool) -> beside.Run:
        def run(p: Program) -> Observation:
            values = record(p.inputs[0].values)
            if returns_it and (not values.array.size or not same):
                return Observation(error=f"RuntimeError: {beside.LEAF}", failed_at=1)
            return Observation([[values]], final={"x0": values})

        return run

    text = f"only in PyTorch: RuntimeError: {beside.LEAF} is being used"
    found = said(program, "accepts", writing(False), writing(True), {}, text)
    assert (found == beside.MORE_ELEMENTS) == known
    given = replace(program, calls=(Call("f", "[]=", "s1", (Ref("x0"), 0, Ref("x0"))),))
    assert not beside.is_a_leaf_of_none(given, writing(False), writing(True))


@pytest.mark.parametrize(
    ("f", "at_infinity", "right"),
    [
        (lambda x: 1 / x, 0.0, True),
        (lambda x: 1 / x, 1.0, False),
        (lambda x: 1 / x, INF, False),
        (lambda x: 1 + 1 / x, 1.0, True),
        (lambda x: x * 2, INF, True),
        (lambda x: x * 2, -INF, False),
        (np.sin, 0.0, False),
        (np.log, INF, False),  # it grows too slowly for a conclusion
    ],
)
def test_limits_towards_infinity(f: Any, at_infinity: float, right: bool) -> None:
    infinite = Input("x0", "float64", (2,), (INF, 2.0))

    def there(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.where(np.isinf(x), NAN, f(x))

    def here(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.where(np.isinf(x), at_infinity, f(x))

    text = f"0, not nan; {NOT_FINITE}"
    found = said(call(infinite), "values", computing(here), computing(there), {}, text)
    assert (found == beside.TOWARDS_INFINITY) == right
    beyond = computing(lambda x: here(x) + (x == 2))  # a second element is wrong
    assert said(call(infinite), "values", beyond, computing(there), {}, text) == ""


def test_a_difference_is_explained_by_the_first_sentence_that_holds() -> None:
    def otherwise(way: str, p: Program) -> Observation:
        return RIGHT(p)

    found = explained(call(X), Difference("values", "f", "no"), RIGHT, DOUBLE, otherwise)
    assert found.text == f"no; {beside.WAYS['strided']}"
    assert explained(call(X), Difference("values", "f", "no"), RIGHT, DOUBLE).text == "no"
