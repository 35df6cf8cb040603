"""Pointwise, reducing and random operators give the same bits for any number of threads.

The samples are enlarged until all threads have work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
import rushlight_core._C as _C
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing import samples_of

THREADS = (1, 2, 3, 8)
ELEMENTS = 8 << 15  # eight threads' share of a pointwise loop
OPS = [op for op in load_ops() if (op.kind in ("pointwise", "reduce") or op.random) and op.samples]


def tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, core.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from tensors(one)


def tiled(value: Any, factor: int) -> Any:
    """Return tensors repeated along each dimension whose size is not 1."""
    if isinstance(value, core.Tensor):
        return value.repeat([1 if size == 1 else factor for size in value.shape]) if value.dim() else value
    if isinstance(value, (tuple, list)):
        return type(value)(tiled(one, factor) for one in value)
    return value


def joint_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which the shapes broadcast, or the largest shape if they do not broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return max(shapes, key=math.prod)


def enlarged(op: Op) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield the arguments of the samples, enlarged to at least ELEMENTS elements."""
    for text in op.samples:
        for sample in samples_of(text.text, core):
            given = [t for t in tensors([*sample.args, *sample.kwargs.values()]) if t.numel() > 1]
            if not given:
                continue
            shape = joint_shape([tuple(t.shape) for t in given])
            growing = sum(size > 1 for size in shape)
            factor = math.ceil((ELEMENTS / math.prod(shape)) ** (1 / growing))
            kwargs = {name: tiled(value, factor) for name, value in sample.kwargs.items()}
            yield [tiled(value, factor) for value in sample.args], kwargs


def call(op: Op, args: list[Any], kwargs: dict[str, Any]) -> list[bytes]:
    """Return the bits of the results and of the arguments that were written."""
    core.manual_seed(0)
    args = [a.clone() if isinstance(a, core.Tensor) else a for a in args]
    if "function" in op.variants:
        result = getattr(core, op.base)(*args, **kwargs)
    elif "method" in op.variants:
        result = getattr(core.Tensor, op.base)(*args, **kwargs)
    else:
        result = _C._call_boxed(op.name, *args, *kwargs.values())
    return [np.ascontiguousarray(bits(t)).tobytes() for t in tensors([result, args])]


def bits(t: Any) -> Any:
    return t.view(core.int16).numpy() if t.dtype == core.bfloat16 else t.numpy()


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_same_bits_with_any_number_of_threads(op: Op) -> None:
    before = core.get_num_threads()
    compared = 0
    try:
        for args, kwargs in enlarged(op):
            results = []
            for threads in THREADS:
                core.set_num_threads(threads)
                try:
                    results.append(call(op, args, kwargs))
                except (RuntimeError, ValueError, TypeError, IndexError):
                    break  # the other arguments of this sample do not fit larger tensors
            for threads, result in zip(THREADS[1:], results[1:], strict=False):
                assert result == results[0], f"{op.name}: {threads} threads give other bits than one"
            compared += len(results) == len(THREADS)
            if compared == (4 if op.kind == "reduce" else 1):
                break
    finally:
        core.set_num_threads(before)
    if not compared:
        pytest.skip("its samples do not grow")
