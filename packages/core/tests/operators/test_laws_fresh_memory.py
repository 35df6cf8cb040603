"""Law: results do not depend on the contents of newly allocated memory.

Every sample runs twice on an allocator that fills its blocks with a different pattern each time. Both runs must give the
same bits. The allocator also ends the process if memory beyond the end of a block is accessed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_core.seams.allocator import set_allocator
from rushlight_testing import Sample
from rushlight_testing.native import compile_plugin
from rushlight_testing.operators import TYPED_ERRORS, all_samples, call, flat, map_tensors, operators
from rushlight_testing.variants import SIZES, one_element

OPS = [op for op in operators() if op.samples]
# The first pattern is NaN, -1 and true; the second is a small number, a large integer and true.
PATTERNS = (0xFF, 0x3C)
CUTS = ("one element", "first dimension of 0", "last dimension of 0")

Fill = Callable[[int], None]


@pytest.fixture(scope="module")
def fill_fresh_with(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fill]:
    """Install the allocator, and return the function that sets its pattern."""
    path = compile_plugin("guard_allocator", tmp_path_factory.mktemp("guard"))
    library = ctypes.CDLL(str(path))
    library.guard_allocator.restype = ctypes.c_void_p
    former = set_allocator(library.guard_allocator())
    yield library.guard_fill_fresh_with
    set_allocator(former)


def calls(op: Op) -> Iterator[tuple[str, Sample]]:
    for dtype in ("float32", "bfloat16", "int32"):
        for sample in all_samples(op, dtype):
            yield f"{sample.text} of {dtype}", sample
    for sample in all_samples(op):
        for cut in CUTS:
            yield f"{sample.text}, {cut}", map_tensors(SIZES[cut], sample)
        yield f"{sample.text}, no dimension", one_element(op, sample, 0)


def bits(value: Any) -> Any:
    if not isinstance(value, core.Tensor):
        return repr(value)
    if value.numel() == 0:
        return b""
    dense = value.contiguous().reshape(-1)
    return (dense if dense.dtype == core.bool else dense.view(core.uint8)).numpy().tobytes()


def results_by_pattern(op: Op, fill: Fill) -> Iterator[tuple[str, list[Any]]]:
    """Yield each call with its results for both patterns, as bits, or the classes of its errors."""
    seen: dict[str, list[Any]] = {}
    for pattern in PATTERNS:
        fill(pattern)
        for text, sample in calls(op):
            core.manual_seed(0)
            try:
                found: Any = [bits(r) for r in flat(call(op, sample))]
            except TYPED_ERRORS as error:
                found = type(error)
            seen.setdefault(text, []).append(found)
    yield from seen.items()


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_fresh_memory_does_not_show(op: Op, fill_fresh_with: Fill) -> None:
    for text, (first, second) in results_by_pattern(op, fill_fresh_with):
        assert first == second, f"{op.name}({text}): what fresh memory holds is in the result"


def test_what_is_not_written_is_noticed(fill_fresh_with: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test fails for an operator that does not write the last element of its result."""

    def forgetful(t: Any) -> Any:
        made = core.empty_like(t)
        made.reshape(-1)[:-1].copy_(t.abs().reshape(-1)[:-1])
        return made

    op = next(op for op in OPS if op.name == "abs")
    assert all(first == second for _, (first, second) in results_by_pattern(op, fill_fresh_with))
    monkeypatch.setattr(core, "abs", forgetful)
    assert not all(first == second for _, (first, second) in results_by_pattern(op, fill_fresh_with))
