"""Law: arguments and results have the shapes that the key `shapes` declares (`rushlight_core.codegen.shapes`)."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.loader import EntryError, load_ops
from rushlight_core.codegen.model import Op
from rushlight_core.codegen.results_in_words import shape_of_result
from rushlight_core.codegen.shapes import BROADCAST, LIKE, PATTERN, REDUCED, result_names
from rushlight_testing import Sample
from rushlight_testing.operators import all_samples, call, map_tensors, operators
from rushlight_testing.samples import arguments_of

SHAPED = [op for op in operators() if op.shapes and op.samples]


class Sizes:
    """The sizes that names denote in one call: first from arguments, then from shapes that match patterns."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.found: dict[str, int] = {}
        self.batches: list[tuple[int, ...]] = []

    def fits(self, text: str, shape: tuple[int, ...], of_result: bool) -> bool:
        """Return whether `shape` matches `text`. Descriptions in words match every shape."""
        if match := LIKE.fullmatch(text):
            wanted = list(self.arguments[match[1]].shape)
            if match[2]:
                dim = self.arguments[match[3]]
                if wanted:
                    wanted[dim] = self.value(match[2])
            return list(shape) == wanted
        if match := BROADCAST.fullmatch(text):
            operands = [self.arguments[name].shape for name in match[1].split(", ")]
            return bool(core.broadcast_shapes(*operands) == shape)
        if match := REDUCED.fullmatch(text):
            return shape == reduced(self.arguments[match[1]].shape, self.arguments)
        if PATTERN.fullmatch(text):
            return any(self.is_pattern(one, shape, of_result) for one in re.split(r"(?<=\)) or (?=\()", text))
        return True

    def is_pattern(self, pattern: str, shape: tuple[int, ...], of_result: bool) -> bool:
        items = [item.strip() for item in re.split(r",(?![^(]*\))", pattern[1:-1]) if item.strip()]
        if "*" in items:
            at = items.index("*")
            end = at + len(shape) - (len(items) - 1)
            if end < at:
                return False
            batch = shape[at:end]
            if of_result and self.batches and batch != core.broadcast_shapes(*self.batches):
                return False
            self.batches.append(batch)
            items = items[:at] + items[at + 1 :]
            shape = shape[:at] + shape[end:]
        return len(items) == len(shape) and all(map(self.is_size, items, shape))

    def is_size(self, item: str, size: int) -> bool:
        if item.isidentifier() and item not in self.arguments:
            return self.found.setdefault(item, size) == size
        return self.value(item) in (None, size)

    def value(self, item: str) -> Any:
        """Return the value of an expression, or None for a description such as "number of choices"."""
        try:
            code = compile(item, item, "eval")
        except SyntaxError:
            return None
        return eval(
            code, {"ceil": math.ceil, "min": min, "max": max, "abs": abs}, self.found | self.arguments
        )


def reduced(shape: tuple[int, ...], arguments: dict[str, Any]) -> tuple[int, ...]:
    """Return the shape without the dimensions `dim`, or without all dimensions if `dim` is not given."""
    dim = arguments.get("dim")
    given = [dim] if isinstance(dim, int) else list(dim or range(len(shape)))
    dims = {d % len(shape) for d in given} if shape else set()
    kept = arguments.get("keepdim")
    return tuple(1 if i in dims else n for i, n in enumerate(shape) if kept or i not in dims)


def check(op: Op, sample: Sample, result: Any) -> None:
    """Raise AssertionError if a shape of the call does not match the entry."""
    arguments = arguments_of(op, sample)
    sizes = Sizes(arguments)
    names = result_names(op)
    values = arguments | dict(zip(names, result if len(names) > 1 else [result], strict=True))
    for name, text in op.shapes.items():
        value = values[name]
        if isinstance(value, core.Tensor):
            shape = tuple(value.shape)
            assert sizes.fits(text, shape, name in names), (
                f"{op.name}({sample.text}): {name} is {shape}, not {text}"
            )


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in SHAPED])
def test_shapes_are_those_that_the_entry_says(op: Op) -> None:
    for sample in all_samples(op):
        check(op, sample, call(op, map_tensors(lambda t: t.clone(), sample) if op.is_inplace else sample))


@pytest.mark.parametrize(
    "op", [pytest.param(op, id=op.name) for op in operators() if op.is_inplace and op.samples]
)
def test_what_is_written_in_place_keeps_its_shape_unless_the_entry_says_otherwise(op: Op) -> None:
    for sample in all_samples(op):
        given = map_tensors(lambda t: t.clone(), sample)
        shape = given.args[0].shape
        if not set(result_names(op)) & set(op.shapes):
            assert call(op, given).shape == shape


def test_every_operator_says_the_shape_of_its_result() -> None:
    silent = [
        op.name
        for op in operators()
        if "hidden" not in op.variants and op.base[0] != "_" and not op.is_inplace and "Shapes:" not in op.doc
        for name, result in zip(result_names(op), op.schema.returns, strict=True)
        if "Tensor" in result.type and name not in op.shapes and not shape_of_result(op) and not op.returns
    ]
    assert silent == []


def test_a_wrong_shape_is_noticed() -> None:
    ops = {op.name: op for op in SHAPED}
    sample = Sample("made here", (core.ones(2, 3), core.ones(3, 4)))
    check(ops["mm"], sample, core.ones(2, 4))
    with pytest.raises(AssertionError, match=re.escape("result is (4, 2), not (n, p)")):
        check(ops["mm"], sample, core.ones(4, 2))
    with pytest.raises(AssertionError, match=re.escape("mat2 is (4, 3), not (m, p)")):
        check(ops["mm"], Sample("made here", (core.ones(2, 3), core.ones(4, 3))), core.ones(2, 3))
    one = Sample("made here", (core.ones(2, 3), 1, 0))
    check(ops["topk"], one, (core.ones(1, 3), core.ones(1, 3)))
    with pytest.raises(AssertionError, match="values is"):
        check(ops["topk"], one, (core.ones(2, 3), core.ones(1, 3)))
    batch = Sample("made here", (core.ones(5, 2, 2),))
    check(ops["linalg_det"], batch, core.ones(5))
    for wrong in (core.ones(2), core.ones(5, 2)):
        with pytest.raises(AssertionError, match="result is"):
            check(ops["linalg_det"], batch, wrong)
    either = replace(ops["linalg_det"], shapes={"result": "() or (1, 2)"})
    check(either, batch, core.ones(1, 2))
    with pytest.raises(AssertionError, match="result is"):
        check(either, batch, core.ones(1))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ("{inptu: (n)}", "'inptu', which is neither"),
        ("{result: like inptu}", "'inptu' is not an argument"),
        ("{result: 'broadcast(input, othre)'}", "'othre' is not an argument"),
        ("{result: like the input}", "cannot be read"),
        ("{result: reduced inptu}", "'inptu' is not an argument"),
        ("{result: like input}\n  returns: A tensor.", "the key 'returns' already defines"),
    ],
)
def test_a_key_that_cannot_be_read_is_refused(tmp_path: Path, shapes: str, message: str) -> None:
    entry = '- op: thing\n  doc: A thing.\n  signature: "(Tensor input) -> Tensor"\n  kind: composite\n'
    (tmp_path / "family.yaml").write_text(f"{entry}  shapes: {shapes}\n")
    with pytest.raises(EntryError, match=re.escape(message)):
        load_ops(tmp_path)
