"""Law: operands with gaps, reordered, at an offset, expanded or overlapping give the same results as dense operands."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    assert_same,
    call,
    is_random,
    map_tensors,
    operators,
)
from rushlight_testing.variants import LAYOUTS, with_layout

# Operators whose result depends on strides, because they use the strides or reinterpret the bytes.
STRIDES_MATTER = (
    *("as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter"),
    *("view", "view.dtype", "view_copy.dtype", "view_as", "view_as_complex", "view_as_complex_copy"),
)
OPS = [op for op in operators() if op.samples and not is_random(op) and op.name not in STRIDES_MATTER]
DTYPES = ("float32", "int64")


def check(op: Op, text: str, placed: Sample, dense: Sample) -> None:
    """Check that both calls give the same results, or raise errors of the same class."""
    try:
        wanted = call(op, dense)
    except TYPED_ERRORS as error:
        with pytest.raises(type(error)):
            call(op, placed)
        return
    assert_same(call(op, placed), wanted, f"{op.name}({text})")


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_layouts_give_the_dense_answer(op: Op) -> None:
    # Arguments that the operator writes are not moved: running statistics, and the first argument of in-place operators.
    names = [a.name for a in op.schema.arguments]
    written = {0} if op.is_inplace else {names.index(name) for name in op.writes}
    for name, layout in LAYOUTS.items():
        for dtype in DTYPES if name == "gaps" else DTYPES[:1]:
            for sample in all_samples(op, dtype):
                placed, dense = with_layout(sample, layout, written)
                check(op, f"{sample.text}, {name}, {dtype}", placed, dense)


def with_many_elements(sample: Sample) -> Sample | None:
    """Return the sample with its tensors broadcast together and repeated to rows of 700 elements, or None."""
    tensors = [t for t in (*sample.args, *sample.kwargs.values()) if isinstance(t, core.Tensor)]
    if not tensors or any(t.numel() == 0 for t in tensors):
        return None
    shape = core.broadcast_shapes(*[t.shape for t in tensors])

    def repeated(t: Any) -> Any:
        line = t.expand(shape).reshape(-1)
        return line.repeat(1 + 2100 // line.numel())[:2100].view(3, 700).clone()

    return map_tensors(repeated, sample)


def every(step: int, t: Any) -> Any:
    """Return a copy of t whose elements in a row are `step` elements apart."""
    return core.stack([t] * step, -1).select(-1, step - 1)


POINTWISE = [op for op in operators() if op.kind == "pointwise" and op.samples]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in POINTWISE])
def test_long_rows_with_steps(op: Op) -> None:
    """Rows longer than the blocks to which elements are copied, also for the tensor that an in-place operator writes."""
    compared = 0
    for dtype in (*DTYPES, "complex128", "bfloat16"):
        for sample in all_samples(op, dtype):
            if (dense := with_many_elements(sample)) is None:
                continue
            for step in (2, 3):
                placed = map_tensors(partial(every, step), dense)
                # An operator in place writes to its first argument.
                check(
                    op, f"{sample.text}, step {step}, {dtype}", placed, map_tensors(core.Tensor.clone, dense)
                )
                compared += 1
    assert compared


def test_layouts_are_what_they_say() -> None:
    for name, layout in LAYOUTS.items():
        shape = (1, 2, 3, 2) if name == "channels last" else (3, 4)
        t = core.arange(12, dtype=core.float32).reshape(shape)
        placed = layout(t)
        assert placed.shape == t.shape
        assert placed.dtype == t.dtype
        assert placed.storage_offset() or not placed.is_contiguous(), name
    assert LAYOUTS["expanded"](core.ones(3, 2)).stride() == (0, 1)
    assert LAYOUTS["windows"](core.ones(3, 4)).stride() == (1, 1)


def test_an_answer_that_strides_decide_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test fails for an operator that treats every operand as dense."""

    def blind(t: Any) -> Any:
        return core.Tensor.abs(t.as_strided((t.numel(),), (1,), t.storage_offset())).reshape(t.shape)

    op = next(op for op in OPS if op.name == "abs")
    sample = Sample("made here", (core.arange(-6, 18, dtype=core.float32).reshape(4, 6),))
    monkeypatch.setattr(core, "abs", blind)
    for name in ("gaps", "transposed"):
        placed, dense = with_layout(sample, LAYOUTS[name])
        check(op, name, dense, dense)
        with pytest.raises(AssertionError):
            check(op, name, placed, dense)
