"""Operators called from C, by name and as functions, compared with the call in Python."""

from __future__ import annotations

import random
from ctypes import byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p, pointer
from typing import Any

import pytest
from c_interface import (
    DEVICE,
    DTYPES_OF_C,
    INDEX,
    NONE,
    OK,
    TENSOR,
    TENSORS,
    TYPE,
    VALUE,
    C,
    Device,
    Value,
    check,
    copied,
    value,
)

import rushlight_core as core

pytest.importorskip("yaml")

from rushlight_core.codegen.emit_c import c_function
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import all_samples, boxed, operators
from rushlight_testing.samples import Sample, arguments_of, samples_of

TYPED = [op for op in operators() if op.c]
# Samples for operators whose entries have none.
SAMPLES = {
    "empty": "(2, 3)", "randn": "(2, 3)", "randint": "5, (2, 3)", "randint.low": "2, 5, (2, 3)",
    "rand_like": "t(2, 3)", "randn_like": "t(2, 3)", "linspace.tensors": "t(), t(), 5",
}  # fmt: skip


def first_sample(op: Op) -> Sample:
    return samples_of(SAMPLES[op.name], core)[0] if op.name in SAMPLES else next(all_samples(op))


def results_of(values: list[Value]) -> list[Any]:
    """Return results as tensors and numbers, and free the C values."""
    found: list[Any] = []
    for one in values:
        if one.kind == TENSOR:
            found.append(copied(c_void_p(one.as_.tensor)))
        elif one.kind == TENSORS:
            found.append([copied(c_void_p(t)) for t in one.as_.tensors[: one.count]])
        elif one.kind == NONE:
            found.append(None)
        else:
            found.append(one.as_.real if one.kind == 3 else one.as_.integer)
        C.rl_value_free(byref(one))
    return found


def boxed_arguments(op: Op, arguments: dict[str, Any], keep: list[Any]) -> list[Value]:
    """Return the arguments as C values, in the order of the schema."""
    made = [value(arguments[a.name], keep) for a in op.schema.arguments]
    for a, one in zip(op.schema.arguments, made, strict=True):
        if a.type.name == "device?" and arguments[a.name] is not None:
            assert arguments[a.name] == "cpu"
            one.kind, one.as_.device.type, one.as_.device.index = DEVICE, 0, -1
    return made


def called_by_name(op: Op, arguments: dict[str, Any]) -> list[Any]:
    keep: list[Any] = []
    given = (Value * len(arguments))(*boxed_arguments(op, arguments, keep))
    results = (Value * len(op.schema.returns))()
    check(C.rl_call(op.name.encode(), given, len(given), results, len(results)))
    found = results_of(list(results))
    for tensor in keep:
        C.rl_tensor_free(tensor)
    return found


def typed_arguments(op: Op, arguments: dict[str, Any], keep: list[Any]) -> list[Any]:
    """Return the parameters of the C function, as its header declares them."""
    made: list[Any] = []
    for a in op.schema.arguments:
        given, kind = arguments[a.name], a.type.name
        if kind in ("TensorOrScalar", "TensorOrScalar?", "Scalar", "Scalar?"):
            made.append(None if given is None else pointer(value(given, keep)))
        elif (kind.startswith("Tensor") and "[]" in kind) or kind.startswith("int[]"):
            boxed_list = value(given, keep)
            items = boxed_list.as_.tensors if kind.startswith("Tensor") else boxed_list.as_.integers
            made += [None if given is None else items, c_size_t(boxed_list.count)]
        elif kind.startswith("Tensor"):
            made.append(None if given is None else c_void_p(value(given, keep).as_.tensor))
        elif kind.startswith("str"):
            made.append(None if given is None else c_char_p(given.encode()))
        elif kind == "device?":
            made.append(None if given is None else pointer(Device(0, -1)))
        else:
            plain = {"int": c_int64, "bool": c_int32, "float": c_double, "dtype": c_int32}.get(
                kind.rstrip("?")
            )
            number = DTYPES_OF_C.index(given) if isinstance(given, core.dtype) else given
            if plain is None or given is None:
                assert given is None, (op.name, a.name)
                made.append(None)
            else:
                made.append(pointer(plain(number)) if kind.endswith("?") else plain(number))
    return made


RESULTS: dict[str, Any] = {
    "Tensor": c_void_p, "Tensor[]": Value, "Scalar": Value, "bool": c_int32, "int": c_int64, "float": c_double,
}  # fmt: skip


def called_as_function(op: Op, arguments: dict[str, Any]) -> list[Any]:
    keep: list[Any] = []
    results = [RESULTS[r.type]() for r in op.schema.returns]
    check(getattr(C, c_function(op))(*typed_arguments(op, arguments, keep), *map(byref, results)))
    found: list[Any] = []
    for result in results:
        if isinstance(result, c_void_p):
            found.append(copied(result))
            C.rl_tensor_free(result)
        else:
            found += results_of([result]) if isinstance(result, Value) else [result.value]
    for tensor in keep:
        C.rl_tensor_free(tensor)
    return found


def assert_equal(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_equal(one, other)
    elif isinstance(wanted, core.Tensor):
        assert found.dtype == wanted.dtype
        assert core.equal(core.nan_to_num(found), core.nan_to_num(wanted.contiguous()))
    else:
        assert found == wanted


@pytest.mark.parametrize("op", TYPED, ids=lambda op: op.name)
def test_results_are_those_of_python(op: Op) -> None:
    sample = first_sample(op)
    wanted, named, typed = [], [], []
    for results, call in (
        (wanted, lambda arguments: boxed(op, sample)),
        (named, lambda arguments: called_by_name(op, arguments)),
        (typed, lambda arguments: called_as_function(op, arguments)),
    ):
        core.manual_seed(5)
        results.append(call(arguments_of(op, sample)))
    first = wanted[0] if len(op.schema.returns) > 1 else [wanted[0]]
    if op.base == "empty":
        assert named[0][0].shape == typed[0][0].shape == first[0].shape
        return
    assert_equal(named[0], first)
    assert_equal(typed[0], first)


@pytest.mark.parametrize("op", TYPED, ids=lambda op: op.name)
def test_functions_refuse_null(op: Op) -> None:
    function, name = getattr(C, c_function(op)), c_function(op)
    assert function(*[None] * 24) == VALUE
    assert C.rl_error_text().decode().startswith(f"{name}(result")
    needed = [a for a in op.schema.arguments if a.type.name in ("Tensor", "TensorOrScalar", "Scalar", "str")]
    if not needed:
        return
    counts = [2 if "[]" in a.type.name else 1 for a in op.schema.arguments]
    kinds = {"float": c_double(0)}
    given = [
        kinds.get(a.type.name) for a, n in zip(op.schema.arguments, counts, strict=True) for _ in range(n)
    ]
    results = [RESULTS[r.type]() for r in op.schema.returns]
    assert function(*given, *map(byref, results)) == VALUE
    assert C.rl_error_text().decode() in {f"{name}({a.name}): must not be null" for a in needed}
    assert not any(isinstance(r, c_void_p) and r.value for r in results)


def test_defaults_may_be_left_out() -> None:
    for op in operators():
        required = [i for i, a in enumerate(op.schema.arguments) if a.required]
        samples = [s for s in all_samples(op) if len(s.args) + len(s.kwargs) == len(required)] if op.c else []
        for sample in samples[:1]:
            arguments = arguments_of(op, sample)
            keep: list[Any] = []
            count = max(required, default=-1) + 1
            given = (Value * max(count, 1))(*boxed_arguments(op, arguments, keep)[:count])
            results = (Value * len(op.schema.returns))()
            core.manual_seed(3)
            check(C.rl_call(op.name.encode(), given, count, results, len(results)))
            core.manual_seed(3)
            if op.base != "empty":
                assert_equal(results_of(list(results)), called_by_name(op, arguments))
            for tensor in keep:
                C.rl_tensor_free(tensor)


X = core.ones(2, 3)


def failing(name: str, *arguments: Any, results: int = 1) -> tuple[int, str]:
    keep: list[Any] = []
    given = (Value * max(len(arguments), 1))(
        *(a if isinstance(a, Value) else value(a, keep) for a in arguments)
    )
    out = (Value * max(results, 1))()
    for one in out:
        one.kind = 99
    status = C.rl_call(name.encode(), given, len(arguments), out, results)
    assert status == C.rl_error_status() != OK
    assert all(one.kind == NONE for one in out[:results])
    for tensor in keep:
        C.rl_tensor_free(tensor)
    return status, C.rl_error_text().decode()


def kind(number: int, **payload: Any) -> Value:
    made = Value(number, 0, payload.pop("count", 0))
    for name, given in payload.items():
        setattr(made.as_, name, given)
    return made


@pytest.mark.parametrize(
    ("call", "status", "text"),
    [
        (lambda: failing("addd", X, 1), 1, "did you mean 'add'"),
        (lambda: failing("Linear", X, X), 1, "did you mean 'linear'?"),
        (lambda: failing("view.dty", X), 1, "did you mean 'view.dtype'?"),
        (lambda: failing("x" * 5000), 1, "there is no operator 'xxx"),
        (lambda: failing("add", X), TYPE, "add: needs 2 to 3 arguments, got 1"),
        (lambda: failing("add", X, 1, 1, 1), TYPE, "add: needs 2 to 3 arguments, got 4"),
        (lambda: failing("add", X, 1, results=0), TYPE, "add: needs 1 results, got 0"),
        (lambda: failing("add", X, 1, results=2), TYPE, "add: needs 1 results, got 2"),
        (
            lambda: failing("add", X, None),
            TYPE,
            "add(other): must be a value of type TensorOrScalar, got none",
        ),
        (lambda: failing("add", X, "1"), TYPE, "add(other): must be a number"),
        (lambda: failing("exp", 1), TYPE, "exp(input): must be a Tensor"),
        (lambda: failing("cat", X), TYPE, "must be a list of tensors"),
        (lambda: failing("cat", [X, None]), VALUE, "cat(tensors): tensor 1 must not be null"),
        (lambda: failing("cat", None), TYPE, "cat(tensors): must be a value of type Tensor[], got none"),
        (lambda: failing("sum", X, [5]), INDEX, "sum(dim): dim must be in [-2, 1], got 5"),
        (lambda: failing("exp", kind(TENSOR)), VALUE, "exp(input): the tensor must not be null"),
        (lambda: failing("exp", kind(77)), TYPE, "exp(input): unknown kind of value 77"),
        (lambda: failing("exp", kind(-1)), TYPE, "unknown kind of value -1"),
        (lambda: failing("cat", kind(TENSORS, count=2)), VALUE, "cat(tensors): must not be null"),
        (lambda: failing("permute", X, kind(9, count=2)), VALUE, "permute(dims): must not be null"),
        (
            lambda: failing("reshape", X, kind(9, count=1 << 62, integers=(c_int64 * 1)(6))),
            VALUE,
            "reshape(shape): the number of integers, 4611686018427387904, is too large for memory",
        ),
        (
            lambda: failing("cat", kind(TENSORS, count=1 << 61, tensors=(c_void_p * 1)())),
            VALUE,
            "cat(tensors): the number of tensors, 2305843009213693952, is too large for memory",
        ),
        (
            lambda: failing("gelu", X, kind(5, count=1 << 63, string=b"none")),
            VALUE,
            "gelu(approximate): the number of bytes, 9223372036854775808, is too large for memory",
        ),
        (
            lambda: failing("einsum", kind(5, count=2), [X]),
            VALUE,
            "einsum(equation): the string must not be null",
        ),
        (
            lambda: failing("to.dtype", X, kind(6, integer=99)),
            VALUE,
            "to.dtype(dtype): must be an rl_dtype, got 99",
        ),
        (lambda: failing("randn", [2], kind(11)), VALUE, "randn(generator): the generator must not be null"),
        (lambda: failing("add", core.ones(3), core.ones(4)), 1, "broadcast"),
    ],
)
def test_bad_calls(call: Any, status: int, text: str) -> None:
    assert call()[0] == status, C.rl_error_text()
    assert text in C.rl_error_text().decode()


def test_null_pointers() -> None:
    out = (Value * 1)()
    for arguments, text in (
        ((None, None, 0, out, 1), "rl_call(name)"),
        ((b"exp", None, 1, out, 1), "rl_call(arguments)"),
        ((b"exp", None, 1, None, 1), "rl_call(results)"),
    ):
        assert C.rl_call(*arguments) == VALUE
        assert C.rl_error_text().decode() == f"{text}: must not be null"


def test_one_integer_fills_a_list() -> None:
    x = core.randn(1, 1, 6, 6)
    keep: list[Any] = []
    given = (Value * 2)(value(x, keep), value(3, keep))
    out = (Value * 1)()
    check(C.rl_call(b"max_pool2d", given, 2, out, 1))
    assert_equal(results_of(list(out))[0], core.max_pool2d(x, 3))
    for tensor in keep:
        C.rl_tensor_free(tensor)


def test_error_texts_are_valid_utf8() -> None:
    """Texts quote strings of the caller, which may be any bytes. Characters are kept, and other bytes are replaced."""
    draw = random.Random(0)
    good = ["é", "€", "\U0001f600", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U0010ffff"]
    bad = [
        b"\xff",
        b"\x80",
        b"\xc0\xaf",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf0\x80\x80\x80",
    ]
    bad.append(b"\xe2\x82")  # the first two bytes of a character
    names = [
        *bad,
        *(g.encode() for g in good),
        *(bytes(draw.choices(range(1, 256), k=8)) for _ in range(500)),
    ]
    for name in names:
        assert C.rl_call(name, None, 0, None, 0) != OK
        text = C.rl_error_text().decode()
        assert ("\ufffd" in text) == (name in bad or "\ufffd" in name.decode(errors="replace"))
    for letter in good:
        C.rl_call(letter.encode(), None, 0, None, 0)
        assert f"there is no operator '{letter}'" in C.rl_error_text().decode()
