"""Law: whether a result shares memory with an input depends neither on sizes nor on strides, and results are distinct.

The key `view` of an entry declares whether results share memory: `always` (which kind `view` implies), `if possible` if it
depends on strides, as for reshape, `by arguments` if it depends on dtypes, flags or the number of tensors. Without the key,
results have new memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.loader import EntryError, load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    call,
    flat,
    map_tensors,
    operators,
    tensors_in,
)
from rushlight_testing.variants import LAYOUTS, SIZES, one_element, with_layout

OPS = [op for op in operators() if op.samples and "hidden" not in op.variants]


def shares(result: Any, inputs: list[Any]) -> bool | None:
    """Return whether a result shares memory with an input; None if this is unknown because tensors have no elements."""
    for given in inputs:
        base = result._base
        if result is given or (base is not None and (base is given or base is given._base)):
            return True
        if result.numel() and given.numel():
            if result.untyped_storage().data_ptr() == given.untyped_storage().data_ptr():
                return True
    return False if result.numel() else None


def variants(op: Op) -> Iterator[tuple[str, list[Sample]]]:
    """Yield each sample's text, with calls for its own sizes, sizes of 1 and 0, and elements that share memory."""
    makers = [
        all_samples(op),
        *(map(lambda s, cut=cut: map_tensors(cut, s), all_samples(op)) for cut in SIZES.values()),
        *(map(lambda s, dims=dims: one_element(op, s, dims), all_samples(op)) for dims in (0, 1)),
        *([] if op.is_inplace else [(with_layout(s, LAYOUTS["expanded"])[0] for s in all_samples(op))]),
    ]
    for group in zip(*makers, strict=True):
        yield group[0].text, list(group)


def observed(op: Op, samples: list[Sample]) -> set[bool]:
    """Return the answers of `shares` for all samples that work."""
    found = set()
    for sample in samples:
        inputs = tensors_in([*sample.args, *sample.kwargs.values()])
        try:
            results = flat(call(op, sample))
        except TYPED_ERRORS:
            continue
        found |= {shares(r, inputs) for r in results if isinstance(r, core.Tensor)} - {None}
    return found  # type: ignore[return-value]


def check(op: Op, text: str, found: set[bool]) -> None:
    declared = "always" if op.kind == "view" or op.is_inplace else op.view
    if declared == "by arguments":
        assert len(found) < 2, f"{op.name}({text}): sizes decide whether it is a view"
    elif declared != "if possible":
        assert found <= {declared == "always"}, f"{op.name}({text}): view: {declared or 'never'}, but {found}"


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_sizes_do_not_decide(op: Op) -> None:
    total = set()
    for text, samples in variants(op):
        found = observed(op, samples)
        check(op, text, found)
        total |= found
    if op.view == "if possible":
        assert True in total, f"{op.name} is never a view: strike out `view: {op.view}`"


def test_a_view_that_sizes_decide_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    op = next(op for op in OPS if op.name == "pixel_shuffle")

    def view_where_possible(t: Any, r: int) -> Any:
        channels, rows, columns = t.shape[-3] // (r * r), t.shape[-2], t.shape[-1]
        split = t.reshape(-1, channels, r, r, rows, columns).permute(0, 1, 4, 2, 5, 3)
        return split.reshape(*t.shape[:-3], channels, rows * r, columns * r)

    samples = [Sample("made here", (core.ones(8, size, size), 2)) for size in (1, 3)]
    assert observed(op, samples) == {False}
    monkeypatch.setattr(core, "pixel_shuffle", view_where_possible)
    assert observed(op, samples) == {False, True}
    for declared in ("", "always", "by arguments"):
        with pytest.raises(AssertionError):
            check(replace(op, view=declared), "made here", observed(op, samples))
    check(replace(op, view="if possible"), "made here", observed(op, samples))


def twice(results: Any) -> bool:
    """Return whether two results are the same object, so that resizing one result would resize the other."""
    tensors = [id(r) for r in flat(results) if isinstance(r, core.Tensor)]
    return len(set(tensors)) < len(tensors)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_results_are_tensors_of_their_own(op: Op) -> None:
    for text, samples in variants(op):
        for sample in samples:
            given = tensors_in([*sample.args, *sample.kwargs.values()])
            if len({id(t) for t in given}) < len(given):
                continue
            try:
                results = call(op, sample)
            except TYPED_ERRORS:
                continue
            assert not twice(results), f"{op.name}({text}): two results are one tensor"


def test_one_tensor_as_two_results_is_noticed() -> None:
    one = core.ones(2)
    assert twice((one, core.ones(2), one))
    assert not twice((one, one[:]))


def test_a_word_that_is_none_is_refused(tmp_path: Path) -> None:
    entry = '- op: thing\n  doc: A thing.\n  signature: "(Tensor input) -> Tensor"\n  kind: composite\n  view: maybe\n'
    (tmp_path / "family.yaml").write_text(entry)
    with pytest.raises(EntryError, match="`view: maybe` is not one of always, if possible, by arguments"):
        load_ops(tmp_path)
