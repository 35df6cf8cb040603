"""Export operators that fill tensors with one number or with a sequence of numbers."""

from __future__ import annotations

from typing import Any

import rushlight_core as core
from rushlight_graph.onnx.builder import Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import Size, UnsupportedError


def _filled(b: Builder, call: Call, value: Any) -> Val:
    dtype = call.result.dtype
    if isinstance(value, Val):
        return b.expand(b.cast(value, dtype), call.result.sizes)
    if dtype not in ("bool",) and isinstance(value, bool):
        value = int(value)
    number = core.tensor([value], dtype=getattr(core, dtype))
    return b.op("ConstantOfShape", b.ints(call.result.sizes), dtype=dtype, value=number)


def _ask(call: Call, *names: str) -> None:
    for name in names:
        if name in call.rule.arguments:
            call[name]


@exports("zeros", "zeros_like", "new_zeros", "zero_", "empty", "empty_like", "new_empty")
def zeros(b: Builder, call: Call) -> Val:
    _ask(call, "size", "input", "dtype")
    return _filled(b, call, 0)


@exports("ones", "ones_like", "new_ones")
def ones(b: Builder, call: Call) -> Val:
    _ask(call, "size", "input", "dtype")
    return _filled(b, call, 1)


@exports("full", "full_like", "new_full", "fill_", "fill_.tensor", "scalar_tensor")
def full(b: Builder, call: Call) -> Val:
    _ask(call, "size", "input", "dtype")
    name = next(name for name in ("fill_value", "value", "s") if name in call.rule.arguments)
    if call.is_tensor(name):
        return _filled(b, call, call.tensor(name))
    value = call[name]
    return _filled(b, call, b.scalar(value, call.result.dtype) if isinstance(value, Size) else value)


@exports("arange", "arange.start")
def arange(b: Builder, call: Call) -> Val:
    _ask(call, "dtype")
    dtype = call.result.dtype
    names = call.rule.arguments
    start = call["start"] if "start" in names else 0
    step = call["step"] if "step" in names else 1
    if dtype not in ("float32", "float64", "int16", "int32", "int64"):
        raise UnsupportedError(f"dtype {dtype} is not supported")
    return b.op("Range", *(b.scalar(value, dtype) for value in (start, call["end"], step)), dtype=dtype)


@exports("eye", "linspace", "logspace", "tril_indices", "triu_indices")
def other(b: Builder, call: Call) -> Val:
    # Calls with fixed sizes are folded to constants.
    raise UnsupportedError("an argument depends on a dynamic size, which is not supported")
