"""Normalization over batches, layers and groups."""

from __future__ import annotations

import rushlight_core as core
from rushlight_graph.onnx.builder import Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import Size, UnsupportedError


def _filled(b: Builder, sizes: list[int], number: float, dtype: str) -> Val:
    return b.constant(core.full(sizes, number, dtype=getattr(core, dtype)))


def _by_channel(b: Builder, value: Val, rank: int) -> Val:
    """Reshape a vector with one value per channel, so that it broadcasts with (batch, channels, ...)."""
    return b.unsqueeze(value, [0, *range(2, rank)])


def _normalized(b: Builder, x: Val, dims: list[int], eps: float) -> Val:
    away = b.op("Sub", x, b.reduce("ReduceMean", x, dims, True))
    variance = b.reduce("ReduceMean", b.op("Mul", away, away), dims, True)
    return b.op("Div", away, b.op("Sqrt", b.op("Add", variance, b.scalar(eps, x.dtype))))


@exports("batch_norm")
def batch_norm(b: Builder, call: Call) -> Val:
    x, training, eps = call.tensor("input"), call["training"], float(call["eps"])
    weight, bias = call.optional("weight"), call.optional("bias")
    mean, variance = call.optional("running_mean"), call.optional("running_var")
    call["momentum"]
    rank = call.rank("input")
    if training:  # if it writes running statistics, the check for writes raises an error
        made = _normalized(b, x, [0, *range(2, rank)], eps)
        made = b.op("Mul", made, _by_channel(b, weight, rank)) if weight else made
        return b.op("Add", made, _by_channel(b, bias, rank)) if bias else made
    channels = call.value("running_mean").sizes
    sizes = [int(size) for size in channels]
    dtype = mean.dtype if mean else x.dtype
    weight = weight or _filled(b, sizes, 1.0, dtype)
    bias = bias or _filled(b, sizes, 0.0, dtype)
    return b.op("BatchNormalization", x, weight, bias, mean, variance, epsilon=eps)


@exports("layer_norm")
def layer_norm(b: Builder, call: Call) -> Val:
    x, shape = call.tensor("input"), call["normalized_shape"]
    weight, bias = call.optional("weight"), call.optional("bias")
    weight = weight or _filled(b, shape, 1.0, x.dtype)
    return b.op("LayerNormalization", x, weight, bias, axis=-len(shape), epsilon=float(call["eps"]))


@exports("_rms_norm")
def rms_norm(b: Builder, call: Call) -> Val:
    x, weight, rank = call.tensor("input"), call.optional("weight"), call.rank("input")
    dims = list(range(rank - len(call["normalized_shape"]), rank))
    squares = b.reduce("ReduceMean", b.op("Mul", x, x), dims, True)
    made = b.op("Div", x, b.op("Sqrt", b.op("Add", squares, b.scalar(float(call["eps"]), x.dtype))))
    return b.op("Mul", made, weight) if weight else made


@exports("group_norm")
def group_norm(b: Builder, call: Call) -> Val:
    x, groups, eps = call.tensor("input"), call["num_groups"], float(call["eps"])
    weight, bias = call.optional("weight"), call.optional("bias")
    sizes, rank = call.value("input").sizes, call.rank("input")
    if isinstance(sizes[1], Size):
        raise UnsupportedError("the number of channels is dynamic")
    made = b.op("Reshape", x, b.ints([0, groups, -1]))
    made = _normalized(b, made, [2], eps)
    made = b.reshape(made, sizes)
    made = b.op("Mul", made, _by_channel(b, weight, rank)) if weight else made
    return b.op("Add", made, _by_channel(b, bias, rank)) if bias else made
