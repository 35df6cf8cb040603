"""Law: the in-place form, the out= form and the call by name of an operator give the same result as the plain call."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.dtypes import samples_of_dtype
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    assert_same,
    boxed,
    call,
    flat,
    inplace,
    is_random,
    map_tensors,
    operators,
)

OPS = operators()
BY_NAME = {op.name: op for op in OPS}
DTYPES = ("float32", "int32", "bool", "complex64", "float16")

# In-place operators whose functional form has another meaning, and why.
NO_COUNTERPART = {
    "detach_": "takes the tensor out of its graph",
    "float_power_": "needs a float64 tensor, as the result is one",
    "resize_": "changes the tensor's size",
}


def ops_with(condition: Any) -> list[Any]:
    """Return parameters of a test for all operators for which `condition` is true."""
    return [pytest.param(op, id=op.name) for op in OPS if op.samples and condition(op)]


# --- in place ---


def functional(op: Op) -> Op | None:
    """Return the functional operator for the in-place operator `op`: index_add for index_add_."""
    base, _, overload = op.name.partition(".")
    return BY_NAME.get(base.removesuffix("_") + ("." + overload if overload else ""))


def pairs() -> list[Any]:
    """Return, for every in-place form, the operator whose samples are used and the function that runs the form."""
    found: list[tuple[Op, Any]] = []
    for op in OPS:
        if is_random(op) or "hidden" in op.variants:
            continue
        if "inplace" in op.variants:
            found.append((op, lambda sample, op=op: inplace(op, sample)))
        if op.is_inplace and op.name not in NO_COUNTERPART and (plain := functional(op)):
            source = plain if plain.samples else op
            found.append(
                (source, lambda sample, op=op: getattr(core.Tensor, op.base)(*sample.args, **sample.kwargs))
            )
    return [pytest.param(op, run, id=f"{op.name}-{i}") for i, (op, run) in enumerate(found) if op.samples]


def check_inplace(op: Op, plain: Any, sample: Sample, run: Any) -> None:
    """Check that `run` writes the result of `plain`, converted to the target's dtype, or raises and changes nothing."""
    target = sample.args[0]
    before = target.clone()
    version, shape = target._version, tuple(target.shape)
    try:
        wanted = plain(map_tensors(lambda t: t.clone(), sample))
    except TYPED_ERRORS as error:
        with pytest.raises(TYPED_ERRORS):
            run(sample)
        assert_same(
            target, before, f"{op.name}({sample.text}): refused with {type(error).__name__}, and changed"
        )
        return
    if not isinstance(wanted, core.Tensor):
        return
    returns_view = not op.is_inplace and wanted._base is not None  # an in-place view has another shape
    fits = core.can_cast(wanted.dtype, target.dtype) and (returns_view or tuple(wanted.shape) == shape)
    try:
        got = run(sample)
    except TYPED_ERRORS as error:
        if fits:
            raise AssertionError(f"{op.name}_({sample.text})") from error
        assert_same(target, before, f"{op.name}_({sample.text}): refused and changed")
        return
    assert fits, (
        f"{op.name}_({sample.text}): {wanted.dtype} {tuple(wanted.shape)} written to {target.dtype} {shape}"
    )
    assert got is target, f"{op.name}_ returns another tensor"
    assert target.dtype == before.dtype, f"{op.name}_ changes the dtype"
    assert_same(target, wanted.to(target.dtype), f"{op.name}_({sample.text})")
    assert returns_view or wanted.numel() == 0 or target._version > version or op.kind == "composite", (
        f"{op.name}_({sample.text}) does not count its write"
    )


@pytest.mark.parametrize(("op", "run"), pairs())
def test_in_place_is_out_of_place(op: Op, run: Any) -> None:
    """The in-place form writes the same result to the first argument, for every dtype and for targets with gaps."""
    for dtype in DTYPES:
        for sample in all_samples(op, dtype):
            if not isinstance(sample.args[0], core.Tensor):
                continue
            own = Sample(sample.text, (sample.args[0].clone(), *sample.args[1:]), sample.kwargs)
            check_inplace(op, lambda s: call(op, s), own, run)
            if dtype == "float32" and own.args[0].dim() and op.name != "as_strided":
                room = core.stack([sample.args[0], sample.args[0]], -1).select(-1, 0)
                gaps = Sample(f"{sample.text}, with gaps", (room, *sample.args[1:]), sample.kwargs)
                check_inplace(op, lambda s: call(op, s), gaps, run)


def test_a_wrong_result_in_place_is_noticed() -> None:
    op = BY_NAME["add"]

    def sample(dtype: Any = core.float32) -> Sample:
        return Sample("made here", (core.ones(2, dtype=dtype), core.ones(2)))

    def plain(s: Sample) -> Any:
        return s.args[0] + s.args[1]

    check_inplace(op, plain, sample(), lambda s: s.args[0].add_(s.args[1]))
    wrong = [
        lambda s: s.args[0].sub_(s.args[1]),
        lambda s: s.args[0] + s.args[1],
        lambda s: (
            s.args[0].data.add_(s.args[1]) and (_ for _ in ()).throw(RuntimeError("refused and changed"))
        ),
    ]
    for run in wrong:
        with pytest.raises(AssertionError):
            check_inplace(op, plain, sample(), run)
    with pytest.raises(AssertionError, match="written to"):
        check_inplace(op, plain, sample(core.int64), lambda s: s.args[0].add_(s.args[1].to(core.int64)))


# --- out= ---


@pytest.mark.parametrize("op", ops_with(lambda op: "out" in op.variants))
def test_out(op: Op) -> None:
    """out= is resized, written and returned."""
    for sample in all_samples(op):
        with_generator(op)
        wanted = flat(call(op, sample))
        outs = [core.empty(0, dtype=one.dtype) for one in wanted]
        given = outs[0] if len(outs) == 1 else tuple(outs)
        with_generator(op)
        got = flat(call(op, sample, out=given))
        assert all(a is b for a, b in zip(got, outs, strict=True)), op.name
        assert_same(outs, wanted, f"{op.name}({sample.text}, out=)")


WIDER = {
    core.float16: core.float32, core.bfloat16: core.float32, core.float32: core.float64, core.complex64: core.complex128,
    core.int32: core.int64, core.bool: core.float32,
}  # fmt: skip
NARROWER = {core.float64: core.float32, core.complex128: core.complex64}


@pytest.mark.parametrize("op", ops_with(lambda op: "out" in op.variants and op.name != "view_copy.dtype"))
def test_out_of_a_wider_dtype(op: Op) -> None:
    """The result is computed and rounded as without out=, and then converted, or it is computed in the dtype of out=."""
    for dtype in DTYPES:
        for sample in samples_of_dtype(op, dtype):
            if "dtype" in sample.kwargs:
                continue  # out= must have this dtype
            with_generator(op)
            try:
                wanted = [one.to(WIDER.get(one.dtype, one.dtype)) for one in flat(call(op, sample))]
                if op.computes_in_out and "dtype" in {a.name for a in op.schema.arguments}:
                    wanted = [call(op, sample, dtype=one.dtype) for one in wanted]
            except TYPED_ERRORS:
                continue
            outs = [core.empty(0, dtype=one.dtype) for one in wanted]
            with_generator(op)
            call(op, sample, out=outs[0] if len(outs) == 1 else tuple(outs))
            # float64 has smaller tolerances than the dtype in which the result was computed.
            got, exact = (
                [one.to(NARROWER.get(one.dtype, one.dtype)) for one in some] for some in (outs, wanted)
            )
            assert_same(got, exact, f"{op.name}({sample.text}, out=)")


@pytest.mark.parametrize("op", ops_with(lambda op: "out" in op.variants))
def test_out_of_another_shape_is_resized_with_a_warning(op: Op) -> None:
    """The warning comes before out= is written. As in PyTorch, functions that create tensors resize without a warning."""
    sample, again = next(iter(all_samples(op))), next(iter(all_samples(op)))
    with_generator(op)
    wanted = flat(call(op, sample))
    outs = [core.full((2, 3, 7), 1, dtype=one.dtype) for one in wanted]
    given = outs[0] if len(outs) == 1 else tuple(outs)
    with_generator(op)
    if any(a.name == "requires_grad" for a in op.schema.arguments):
        call(op, again, out=given)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=r"^An output with one or more elements was resized"):
                call(op, sample, out=given)
        assert all(one.shape == (2, 3, 7) and bool((one == 1).all()) for one in outs), op.name
        with_generator(op)
        with pytest.warns(UserWarning, match="was resized") as found:
            call(op, again, out=given)
        assert len(found) == len(outs), op.name
    assert_same(outs, wanted, f"{op.name}({sample.text}, out=)")


def with_generator(op: Op) -> None:
    if is_random(op):
        core.manual_seed(0)


# --- by name ---


@pytest.mark.parametrize("op", ops_with(lambda op: True))
def test_boxed(op: Op) -> None:
    """A call by name gives the same result as the typed call."""
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        with_generator(op)
        by_name = boxed(op, again)
        with_generator(op)
        assert_same(by_name, call(op, sample), f"{op.name}({sample.text})")
