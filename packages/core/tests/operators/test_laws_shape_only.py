"""Law: on the meta device an operator gives the sizes, strides, dtypes and number of results that it gives elsewhere.

Operators whose result's size depends on values (kind `dynamic`) refuse, and so may those that read values on the way, which
say so in their entry (`synchronises`). Both raise NotImplementedError and say why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

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
    map_tensors,
    operators,
    tensors_in,
)
from rushlight_testing.samples import arguments_of
from rushlight_testing.variants import LAYOUTS, SIZES, one_element

OPS = operators()
DTYPES = ("float32", "int64", "bool", "complex64")
REFUSED = re.compile("depends on values, which a meta tensor does not have|has no data to copy")


def meta(t: Any) -> Any:
    return core.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


def on_meta(op: Op, sample: Sample) -> Sample:
    """The sample on the meta device, but for arguments that lie on the host."""
    there = {id(t) for name in op.host for t in tensors_in(arguments_of(op, sample)[name])}
    return map_tensors(lambda t: t if id(t) in there else meta(t), sample)


def attempt(op: Op, sample: Sample) -> Any:
    if is_random(op):
        core.manual_seed(0)
    try:
        return flat(call(op, sample))
    except TYPED_ERRORS as error:
        return error


def form(result: Any) -> Any:
    """What the shape-only form must tell of a result."""
    if not isinstance(result, core.Tensor):
        return result
    return tuple(result.shape), result.stride(), result.dtype


def check(op: Op, text: str, got: Any, wanted: Any) -> None:
    if isinstance(wanted, Exception):
        return
    if isinstance(got, Exception):
        told = f"{op.name}({text}): on the meta device {type(got).__name__}: {got}"
        assert op.synchronises, told
        assert isinstance(got, NotImplementedError), told
        assert REFUSED.search(str(got)), told
        return
    assert op.kind != "dynamic", f"{op.name}({text}): on the meta device {got}, without values"
    assert len(got) == len(wanted), (
        f"{op.name}({text}): {len(got)} results on the meta device, not {len(wanted)}"
    )
    for a, b in zip(got, wanted, strict=True):
        assert form(a) == form(b), f"{op.name}({text}): on the meta device {form(a)}, not {form(b)}"
        if isinstance(a, core.Tensor) and not op.synchronises:  # which may copy to the host
            assert a.device.type == "meta", f"{op.name}({text}): on {a.device}"


def calls(op: Op) -> Iterator[tuple[str, Sample, Sample]]:
    """The samples, of several dtypes, sizes and layouts, each twice."""
    for dtype in DTYPES:
        for sample, again in zip(all_samples(op, dtype), all_samples(op, dtype), strict=True):
            yield f"{sample.text}, {dtype}", sample, again
    for sample in all_samples(op):
        for name, change in (SIZES | LAYOUTS).items():
            yield f"{sample.text}, {name}", map_tensors(change, sample), map_tensors(change, sample)
        yield f"{sample.text}, no dimension", one_element(op, sample, 0), one_element(op, sample, 0)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS if op.samples])
def test_meta_tells_what_comes(op: Op) -> None:
    for text, sample, again in calls(op):
        if tensors_in([*again.args, *again.kwargs.values()]):
            there = on_meta(op, again)
            check(op, text, attempt(op, there), attempt(op, sample))


def test_a_wrong_form_is_noticed() -> None:
    op = next(op for op in OPS if op.name == "add")
    right = [core.ones(2, 3)]
    check(op, "made here", [core.empty(2, 3, device="meta")], right)
    for wrong in (
        [core.empty(3, 2, device="meta")],
        [core.empty(3, 2, device="meta").t()],
        [core.empty(2, 3, dtype=core.int64, device="meta")],
        [core.empty(2, 3)],
        [],
        NotImplementedError("add: the result depends on values, which a meta tensor does not have"),
        RuntimeError("add: shapes do not broadcast"),
    ):
        with pytest.raises(AssertionError):
            check(op, "made here", wrong, right)
