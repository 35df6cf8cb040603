"""Tests of every operator, made from its entry in ops/*.yaml: samples, errors and the oracle."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import rushlight_core as core
import rushlight_core._C as _C
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample, oracles, samples_of
from rushlight_testing.samples import arguments_of

OPS = load_ops()
TYPED_ERRORS = (RuntimeError, ValueError, TypeError, IndexError, MemoryError)
TOLERANCES = {
    "float64": 1e-9,
    "float32": 3e-5,
    "complex128": 1e-9,
    "complex64": 3e-5,
    "float16": 1e-2,
    "bfloat16": 6e-2,
}
OTHER_DTYPES = (
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)


def ops_with(condition: Callable[[Op], Any]) -> list[Any]:
    """Parameters of a test over the operators for which `condition` holds."""
    return [pytest.param(op, id=op.name) for op in OPS if condition(op)]


# Conversions to a real dtype leave the imaginary part behind.
DROP_IMAGINARY = ("to", "type_as", "sum")


def all_samples(op: Op, dtype: str = "float32") -> Iterator[Sample]:
    for text in op.samples:
        yield from samples_of(text.text, core, dtype)


# --- calls ---


def is_random(op: Op) -> bool:
    return op.random or "Generator?" in [a.type.name for a in op.schema.arguments]


def boxed(op: Op, sample: Sample, name: str | None = None, extra: tuple[Any, ...] = ()) -> Any:
    """The call by the operator's name, as other languages and fallbacks make it."""
    bound = arguments_of(op, sample)
    values = []
    for a in op.schema.arguments:
        value = bound[a.name]
        values.append(list(value) if isinstance(value, tuple) else value)
    return _C._call_boxed(name or op.name, *values, *extra)


def call(op: Op, sample: Sample, **more: Any) -> Any:
    """The call that users make; of hidden operators, by name."""
    if "function" in op.variants:
        return getattr(core, op.base)(*sample.args, **sample.kwargs, **more)
    if "method" in op.variants:
        return getattr(core.Tensor, op.base)(*sample.args, **sample.kwargs, **more)
    return boxed(op, sample)


def flat(results: Any) -> list[Any]:
    if isinstance(results, (tuple, list)):
        return [one for r in results for one in flat(r)]
    return [results]


# --- expectations ---


def to_numpy(value: Any, wide: bool) -> Any:
    if isinstance(value, (list, tuple)) and any(isinstance(v, core.Tensor) for v in value):
        return [to_numpy(v, wide) for v in value]
    if not isinstance(value, core.Tensor):
        return value
    if value.dtype in (core.float16, core.bfloat16) or (wide and value.is_floating_point()):
        return value.to(core.float64).numpy()
    if value.is_complex():
        return value.to(core.complex128).numpy() if wide else value.numpy()
    return value.to(core.int64).numpy() if wide and value.dtype != core.bool else value.numpy()


def expectation(op: Op, sample: Sample) -> Any:
    """What the oracle says, computed in the widest types."""
    names = {name: getattr(oracles, name) for name in dir(oracles) if not name.startswith("_")}
    names |= {"np": np, "scipy": scipy, "builtins": builtins, "itertools": itertools}
    names |= {name: to_numpy(value, wide=True) for name, value in arguments_of(op, sample).items()}
    for name, value in names.items():
        if isinstance(value, core.dtype):
            names[name] = (
                np.dtype(str(value).rsplit(".", 1)[-1]) if value is not core.bfloat16 else np.float32
            )
    with np.errstate(all="ignore"):
        return eval(op.oracle, names)


def check(op: Op, sample: Sample, got: Any, wanted: Any) -> None:
    results, expected = flat(got), flat(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    # An oracle may know the first result only.
    for result, value in zip(results, expected, strict=len(expected) > 1):
        if not isinstance(result, core.Tensor):
            assert result == value, f"{op.name}({sample.text}): {result} is not {value}"
            continue
        value = np.asarray(value)
        assert tuple(result.shape) == value.shape, (
            f"{op.name}({sample.text}): shape {tuple(result.shape)}, not {value.shape}"
        )
        values = to_numpy(result, wide=True)
        name = str(result.dtype).rsplit(".", 1)[-1]
        if value.dtype.kind == "c" and not result.is_complex() and op.base in DROP_IMAGINARY:
            value = value.real
        if name == "bool":
            value = value != 0
        elif name in ("uint8", "int32", "int64") and value.dtype.kind == "f":
            continue  # what a floating oracle says of integers is not exact
        elif name in ("uint8", "int32"):
            value = value.astype(name).astype(np.int64)
        tolerance = TOLERANCES.get(name, 0.0)
        if value.dtype == np.float16:  # NumPy computes with bools in float16
            tolerance = TOLERANCES["float16"]
        if name in ("float16", "bfloat16"):
            finite = np.abs(value) < 6e4  # the rest may be an infinity
            values, value = values[finite], value[finite]
        np.testing.assert_allclose(
            values, value, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=f"{op.name}({sample.text})"
        )


def same(a: Any, b: Any, text: str) -> None:
    left, right = flat(a), flat(b)
    assert len(left) == len(right), text
    for x, y in zip(left, right, strict=True):
        if isinstance(x, core.Tensor) and isinstance(y, core.Tensor):
            assert (x.dtype, x.shape) == (y.dtype, y.shape), text
            tolerance = TOLERANCES.get(str(x.dtype).rsplit(".", 1)[-1], 0.0)
            np.testing.assert_allclose(
                to_numpy(x, True),
                to_numpy(y, True),
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
                err_msg=text,
            )
        else:
            assert x == y or (x != x and y != y), text


# --- the tests ---


@pytest.mark.parametrize("op", ops_with(lambda op: op.oracle and op.samples))
def test_values(op: Op) -> None:
    """Results have the oracle's shapes and values."""
    for sample in all_samples(op):
        wanted = expectation(op, sample)
        check(op, sample, call(op, sample), wanted)


@pytest.mark.parametrize("op", ops_with(lambda op: op.oracle and op.samples))
def test_dtypes(op: Op) -> None:
    """Of every dtype: the oracle's values, or a typed error."""
    for dtype in OTHER_DTYPES:
        for sample in all_samples(op, dtype):
            try:
                wanted = expectation(op, sample)
            except (TypeError, ValueError, ZeroDivisionError, IndexError):
                wanted = None  # not defined for NumPy
            try:
                got = call(op, sample)
            except TYPED_ERRORS:
                continue
            if wanted is not None:
                check(op, sample, got, wanted)


@pytest.mark.parametrize("op", ops_with(lambda op: op.errors))
def test_errors(op: Op) -> None:
    """Bad arguments raise typed errors that say what is wrong."""
    for text in op.errors:
        for sample in samples_of(text.text, core):
            with pytest.raises(TYPED_ERRORS) as caught:
                call(op, sample)
            assert len(str(caught.value).split("\n")[0]) > 12, f"{op.name}({text.text}): {caught.value}"


def _strided(value: Any) -> Any:
    """The same values with gaps between them in memory."""
    if isinstance(value, core.Tensor) and value.dim() > 0:
        return core.stack([value, value], -1).select(-1, 0)
    return [_strided(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "op",
    ops_with(
        lambda op: (
            op.samples
            and not is_random(op)
            and op.name not in ("as_strided", "view_as_complex")
            and op.base != "view"
        )
    ),
)
def test_strides(op: Op) -> None:
    """Operands with gaps give what dense ones do."""
    for dense, source in zip(all_samples(op), all_samples(op), strict=True):
        strided = Sample(source.text, tuple(map(_strided, source.args)), source.kwargs)
        same(call(op, strided), call(op, dense), f"{op.name}({dense.text})")


@pytest.mark.parametrize("op", ops_with(lambda op: op.samples and "out" in op.variants))
def test_out(op: Op) -> None:
    """out= is resized, written and returned."""
    for sample in all_samples(op):
        wanted = flat(call(op, sample))
        outs = [core.empty(0, dtype=one.dtype) for one in wanted]
        given = outs[0] if len(outs) == 1 else tuple(outs)
        got = flat(call(op, sample, out=given))
        assert all(a is b for a, b in zip(got, outs, strict=True)), op.name
        same(outs, wanted, f"{op.name}({sample.text}, out=)")


@pytest.mark.parametrize("op", ops_with(lambda op: op.samples and "inplace" in op.variants))
def test_inplace(op: Op) -> None:
    """The trailing underscore writes the same result over the first argument, and counts the write."""
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        target = again.args[0]
        if not isinstance(target, core.Tensor):
            continue
        wanted = call(op, sample)
        if wanted.shape != target.shape or wanted.dtype != target.dtype:
            continue
        target, version = target.clone(), target._version
        name = op.base + "_"
        method = getattr(core.Tensor, name, None) or getattr(core, name)
        got = method(target, *again.args[1:], **again.kwargs)
        assert got is target, op.name
        same(target, wanted, f"{name}({sample.text})")
        assert target._version > version or wanted.numel() == 0 or op.kind == "composite", op.name


@pytest.mark.parametrize("op", ops_with(lambda op: op.samples and not is_random(op)))
def test_boxed(op: Op) -> None:
    """A call by name gives what the typed call gives."""
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        same(boxed(op, again), call(op, sample), f"{op.name}({sample.text})")


def _meta(value: Any) -> Any:
    if isinstance(value, core.Tensor):
        return core.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return [_meta(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("op", ops_with(lambda op: op.samples and not op.synchronises))
def test_meta(op: Op) -> None:
    """On the meta device: the same shapes and dtypes, without values."""
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        if not any(isinstance(v, core.Tensor) for v in flat(list(again.args))):
            return
        shapes = Sample(
            again.text, tuple(map(_meta, again.args)), {k: _meta(v) for k, v in again.kwargs.items()}
        )
        try:
            got = call(op, shapes)
        except NotImplementedError:
            continue
        for a, b in zip(flat(got), flat(call(op, sample)), strict=True):
            if a is None and b is None:  # a gradient that was not wanted
                continue
            assert (a.shape, a.dtype, a.device.type) == (b.shape, b.dtype, "meta"), (
                f"{op.name}({sample.text})"
            )


def test_a_wrong_result_is_noticed() -> None:
    """These tests can fail: a value, a shape or a dtype that is not the oracle's."""
    add = next(op for op in OPS if op.name == "add")
    sample = Sample("made here", (core.ones(2), core.ones(2)))
    wanted = expectation(add, sample)
    check(add, sample, core.full((2,), 2.0), wanted)
    for wrong in (core.full((2,), 2.001), core.full((1, 2), 2.0), core.full((2,), float("nan"))):
        with pytest.raises(AssertionError):
            check(add, sample, wrong, wanted)


def test_entries_are_complete() -> None:
    """Whatever users call has a line of documentation, and samples or errors unless it is random or writes."""
    for op in OPS:
        assert op.doc.strip(), op.name
        if "hidden" not in op.variants and not is_random(op) and not op.is_inplace:
            assert op.samples or op.errors or op.name in {"cuda", "empty_like", "new_empty", "index_put"}, (
                op.name
            )
