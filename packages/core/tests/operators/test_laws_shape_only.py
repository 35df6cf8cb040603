"""Law: on the meta device, an operator returns results of the same number, sizes, strides and dtypes as on the CPU, and it
raises exceptions of the same class for invalid arguments.

Operators whose result's size depends on values (kind `dynamic`) raise NotImplementedError, which names the reason. The same
is allowed for the operators of `VALUES_DECIDE`, whose result cannot be determined without values. Arguments that the CPU
refuses because of their values (a singular matrix, an index out of range) are accepted, because the meta device has no
values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.dtypes import DTYPES, samples_of_dtype
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
from rushlight_testing.samples import arguments_of, samples_of
from rushlight_testing.variants import LAYOUTS, SIZES, one_element

OPS = operators()
# Operators, apart from kind `dynamic`, that may raise, and why their results cannot be determined without values.
_CHOSEN = "how many elements are chosen"
_HOST = "the result is on the host"
VALUES_DECIDE = {
    "allclose": _HOST,
    "cpu": _HOST,
    "equal": _HOST,
    "to": _HOST,
    "argwhere": _CHOSEN,
    "index": f"{_CHOSEN} by a mask",
    "masked_select": _CHOSEN,
    "nonzero.as_tuple": _CHOSEN,
    "where.indices": _CHOSEN,
    "_unique": "how many different elements there are",
    "linalg_lstsq": "there are residuals if the rank is full",
    "repeat_interleave.repeats": "the sum of the repeats, unless output_size says it",
    "repeat_interleave.tensor": "the sum of the repeats, unless output_size says it",
}
REFUSED = re.compile("depends on values, which a meta tensor does not have|Cannot copy out of meta tensor")


# Every index into a dimension without elements is invalid, but the meta device does not check indices.
NOTHING_TO_CHOOSE = re.compile("for 0 classes|of size 0|of 0 (elements|rows)|0 rows|the mask has")


# Errors about sums and bounds of values, which none of OTHER_VALUES may satisfy.
SUMS_AND_LENGTHS = re.compile(
    r"the repeats add up to|does not (have one row for each of the \d+ targets|match target_lengths)"
    r"|_lengths\): entry \d+ must be"
)


def meta(t: Any) -> Any:
    """Return a tensor with the same sizes, strides and offset on the meta device."""
    reach = sum((n - 1) * step for n, step in zip(t.shape, t.stride(), strict=True)) + 1 if t.numel() else 0
    whole = core.empty(t.storage_offset() + reach, dtype=t.dtype, device="meta")
    return whole.as_strided(t.shape, t.stride(), t.storage_offset())


def on_meta(op: Op, sample: Sample) -> Sample:
    """Return the sample on the meta device, except for arguments that must be on the host."""
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
    """Return the properties of a result that must agree on the meta device."""
    if not isinstance(result, core.Tensor):
        return result
    return tuple(result.shape), result.stride(), result.dtype


def ones_on_the_diagonal(t: Any) -> Any:
    return core.eye(t.shape[-2], t.shape[-1], dtype=t.dtype).expand(t.shape) if t.dim() > 1 else t


def all_different(t: Any) -> Any:
    return core.arange(t.numel()).square().cos().to(t.dtype).reshape(t.shape)


OTHER_VALUES = (core.zeros_like, core.ones_like, ones_on_the_diagonal, all_different)


def refused_for_its_values(op: Op, sample: Sample, error: Exception) -> bool:
    """Return whether the same call works with other values."""
    if NOTHING_TO_CHOOSE.search(str(error)) or SUMS_AND_LENGTHS.search(str(error)):
        return True
    others = (map_tensors(lambda t, values=values: values(t), sample) for values in OTHER_VALUES)
    return any(not isinstance(attempt(op, other), Exception) for other in others)


def may_refuse(op: Op) -> bool:
    return op.kind == "dynamic" or op.name in VALUES_DECIDE


def check_refusal(op: Op, text: str, got: Any, wanted: Exception | None, sample: Sample) -> None:
    """Check `got` on the meta device against `wanted` on the CPU. At least one of them is an exception."""
    if not isinstance(got, Exception):
        assert wanted is not None
        assert refused_for_its_values(op, sample, wanted), (
            f"{op.name}({text}): accepted on the meta device, elsewhere {type(wanted).__name__}: {wanted}"
        )
    elif not (may_refuse(op) and isinstance(got, NotImplementedError) and REFUSED.search(str(got))):
        assert type(got) is type(wanted), (
            f"{op.name}({text}): on the meta device {type(got).__name__}: {got}\nelsewhere "
            + (f"{type(wanted).__name__}: {wanted}" if wanted else "it works")
        )


def check(op: Op, text: str, got: Any, wanted: Any, sample: Sample) -> None:
    """Compare the results or errors of `sample` on the meta device and on the CPU."""
    if isinstance(got, Exception) or isinstance(wanted, Exception):
        check_refusal(op, text, got, wanted if isinstance(wanted, Exception) else None, sample)
        return
    assert op.kind != "dynamic", f"{op.name}({text}): on the meta device {got}, without values"
    assert len(got) == len(wanted), (
        f"{op.name}({text}): {len(got)} results on the meta device, not {len(wanted)}"
    )
    for a, b in zip(got, wanted, strict=True):
        assert form(a) == form(b), f"{op.name}({text}): on the meta device {form(a)}, not {form(b)}"
        if isinstance(a, core.Tensor) and op.name not in VALUES_DECIDE:  # these may copy to the host
            assert a.device.type == "meta", f"{op.name}({text}): on {a.device}"


def calls(op: Op) -> Iterator[tuple[str, Sample, Sample]]:
    """Yield, twice each, the samples of all dtypes, sizes and layouts, and the calls that must raise."""
    for dtype in DTYPES:
        for sample, again in zip(samples_of_dtype(op, dtype), samples_of_dtype(op, dtype), strict=True):
            yield f"{sample.text}, {dtype}", sample, again
    for error in op.errors:
        for sample, again in zip(samples_of(error.text, core), samples_of(error.text, core), strict=True):
            yield f"{sample.text}, an error", sample, again
    for sample in all_samples(op):
        for name, change in (SIZES | LAYOUTS).items():
            yield f"{sample.text}, {name}", map_tensors(change, sample), map_tensors(change, sample)
        yield f"{sample.text}, no dimension", one_element(op, sample, 0), one_element(op, sample, 0)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS if op.samples])
def test_meta_tells_what_comes(op: Op) -> None:
    for text, sample, again in calls(op):
        if tensors_in([*again.args, *again.kwargs.values()]):
            there = on_meta(op, again)
            check(op, text, attempt(op, there), attempt(op, sample), sample)


def test_operators_that_may_refuse_exist_and_look_at_values() -> None:
    synchronise = {op.name for op in OPS if op.synchronises and op.kind != "dynamic"}
    assert set(VALUES_DECIDE) <= synchronise


def test_results_that_values_do_not_decide() -> None:
    """Calls that read values on the CPU, but whose results can be determined without values."""
    end, lengths = core.empty((), device="meta"), core.empty(3, dtype=core.int64, device="meta")
    for made in (core.linspace(0, end, 5, device="meta"), core.logspace(end, 2.0, 5, device="meta")):
        assert form(made) == ((5,), (1,), core.float32)
        assert made.device.type == "meta"
    assert core.linspace(end.to(core.complex64), 1, 2, device="meta").dtype is core.complex64
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta"):
        core.linspace(0, end, 5)
    x = core.empty(3, 2, device="meta")
    assert form(x.repeat_interleave(lengths, 0, output_size=7)) == ((7, 2), (2, 1), core.float32)
    assert form(core.repeat_interleave(lengths, output_size=4)) == ((4,), (1,), core.int64)
    for refused in (lambda: x.repeat_interleave(lengths, 0), lambda: core.repeat_interleave(lengths)):
        with pytest.raises(NotImplementedError, match="depends on values"):
            refused()
    with pytest.raises(RuntimeError, match="needs 1 or 2 integers"):
        x.repeat_interleave(lengths, 1, output_size=7)
    scores = core.empty(6, 3, 4, device="meta")
    losses = [
        core.ctc_loss(scores, targets, lengths, lengths, reduction=0) for targets in (lengths, x.long())
    ]
    assert [form(loss) for loss in losses] == [((3,), (1,), core.float32)] * 2
    on_host = core.tensor([1, 0, 1])
    assert core.ctc_loss(scores, core.ones(3, 1, dtype=core.int64), on_host, on_host).device.type == "meta"
    with pytest.raises(RuntimeError, match="must be from 0 to 6"):
        core.ctc_loss(scores, lengths, on_host + 6, on_host)


def test_a_wrong_form_is_noticed() -> None:
    op = next(op for op in OPS if op.name == "add")
    right, sample = [core.ones(2, 3)], Sample("made here", (core.ones(2, 3), 1))
    check(op, "made here", [core.empty(2, 3, device="meta")], right, sample)
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
            check(op, "made here", wrong, right, sample)


def test_a_refusal_of_one_device_alone_is_noticed() -> None:
    by_name = {op.name: op for op in OPS}
    accepted = [core.empty(2, 2, device="meta")]
    no_kernel = NotImplementedError("not defined for dtype bool")
    bools = Sample("made here", (core.ones(2, 2, dtype=core.bool), core.ones(2, 2, dtype=core.bool)))
    check(by_name["mm"], "made here", no_kernel, no_kernel, bools)
    for got in (accepted, RuntimeError("the dtypes differ")):
        with pytest.raises(AssertionError):
            check(by_name["mm"], "made here", got, no_kernel, bools)
    singular = Sample("made here", (core.ones(2, 2),))
    check(by_name["linalg_inv"], "made here", accepted, core.linalg.LinAlgError("singular"), singular)
