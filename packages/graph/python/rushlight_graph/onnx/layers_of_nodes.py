"""Functions that compute ONNX nodes of layers, matrix products and losses. For other nodes, see calls_of_nodes.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_graph.onnx.calls_of_nodes import (
    CALLS,
    Attributes,
    Function,
    NodeError,
    ints_of,
    node,
    tensor_of,
)


@node("Gemm")
def gemm(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    a, b, *rest = map(tensor_of, inputs)
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    a = a.t() if attributes.get("transA") else a
    if attributes.get("transB") and rest and rest[0].ndim == 1 and alpha == beta == 1:
        return core.linear(a, b, rest[0])
    b = b.t() if attributes.get("transB") else b
    return core.addmm(rest[0], a, b, alpha=alpha, beta=beta) if rest else alpha * (a @ b)


@node("Einsum")
def einsum(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return core.einsum(attributes["equation"], *map(tensor_of, inputs))


def _spatial(attributes: Attributes, name: str, count: int, default: int) -> list[int]:
    return list(attributes.get(name, [default] * count))


def _padding(attributes: Attributes, count: int, where: str) -> tuple[list[int], list[int]]:
    if attributes.get("auto_pad", "NOTSET") != "NOTSET":
        raise NodeError(f"{where}: auto_pad is not supported")
    pads = _spatial(attributes, "pads", 2 * count, 0)
    return pads[:count], pads[count:]


def _convolution(transposed: bool) -> Function:
    def call(attributes: Attributes, inputs: list[Any], where: str) -> Any:
        x, weight, bias = [*inputs, None][:3]
        count = x.ndim - 2
        before, after = _padding(attributes, count, where)
        if before != after:
            raise NodeError(f"{where}: different padding at the beginning and the end is not supported")
        stride, dilation = (_spatial(attributes, name, count, 1) for name in ("strides", "dilations"))
        added = _spatial(attributes, "output_padding", count, 0)
        group = attributes.get("group", 1)
        return core.convolution(x, weight, bias, stride, before, dilation, transposed, added, group)

    return call


CALLS["Conv"], CALLS["ConvTranspose"] = _convolution(False), _convolution(True)


def _windows(
    attributes: Attributes, x: Tensor, where: str, fill: float
) -> tuple[Tensor, list[int], list[int]]:
    """Return the arguments of a pooling operator: the input, the size of the windows, and the padding.

    If the padding differs between the two ends of a dimension, return the input padded with `fill`, and a padding of 0.
    """
    kernel = attributes["kernel_shape"]
    count = len(kernel)
    before, after = _padding(attributes, count, where)
    if attributes.get("ceil_mode"):
        raise NodeError(f"{where}: ceil_mode is not supported")
    if before == after:
        return x, kernel, before
    ours = [number for d in reversed(range(count)) for number in (before[d], after[d])]
    return core.constant_pad_nd(x, ours, fill), kernel, [0] * count


@node("MaxPool")
def max_pool(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    before = inputs[0]
    x, kernel, padding = _windows(attributes, before, where, -math.inf)
    count = len(kernel)
    stride, dilation = (_spatial(attributes, name, count, 1) for name in ("strides", "dilations"))
    pool: Callable[..., Any]
    pool = {2: core.max_pool2d_with_indices, 3: core.max_pool3d_with_indices}[count]
    values, positions = pool(x, kernel, stride, padding, dilation)
    sizes = before.shape[-count:]
    if x is not before:  # the positions of the maxima refer to the padded input
        begin, _ = _padding(attributes, count, where)
        rest, positions, step = positions, core.zeros_like(positions), 1
        for d in reversed(range(count)):
            positions = positions + (rest % x.shape[d - count] - begin[d]) * step
            rest, step = rest // x.shape[d - count], step * sizes[d]
    # ONNX counts positions from the first element of the batch.
    rows = core.arange(x.shape[0] * x.shape[1]).reshape([x.shape[0], x.shape[1], *[1] * count])
    return [values, positions + rows * math.prod(sizes)]


@node("AveragePool")
def average_pool(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    (x,) = inputs
    kernel = attributes["kernel_shape"]
    count = len(kernel)
    before, after = _padding(attributes, count, where)
    stride = _spatial(attributes, "strides", count, 1)
    pool = {1: core.avg_pool1d, 2: core.avg_pool2d, 3: core.avg_pool3d}[count]
    counts = bool(attributes.get("count_include_pad", 0))
    if attributes.get("ceil_mode") or _spatial(attributes, "dilations", count, 1) != [1] * count:
        raise NodeError(f"{where}: ceil_mode and dilations are not supported")
    if before == after:
        return pool(x, kernel, stride, before, False, counts)
    ours = [number for d in reversed(range(count)) for number in (before[d], after[d])]
    sums = pool(core.constant_pad_nd(x, ours), kernel, stride)
    if counts:
        return sums
    return sums / pool(core.constant_pad_nd(core.ones_like(x), ours), kernel, stride)


@node("BatchNormalization")
def batch_normalization(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, scale, bias, mean, variance = inputs
    if attributes.get("training_mode"):
        raise NodeError(f"{where}: training_mode is not supported")
    return core.batch_norm(x, scale, bias, mean, variance, False, 0.1, attributes.get("epsilon", 1e-5))


@node("LayerNormalization")
def layer_normalization(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, scale, bias = [*inputs, None][:3]
    axis = attributes.get("axis", -1) % x.ndim
    if scale.ndim != x.ndim - axis:
        raise NodeError(f"{where}: a broadcast scale is not supported")
    return core.layer_norm(x, list(scale.shape), scale, bias, attributes.get("epsilon", 1e-5))


# For each gate in our order, its position in ONNX's order.
_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}


def _recurrent(kind: str) -> Function:
    def call(attributes: Attributes, inputs: list[Any], where: str) -> Any:
        x, w_ih, w_hh, bias, lengths, hidden, cell = [*inputs, None, None, None, None][:7]
        size, direction = attributes["hidden_size"], attributes.get("direction", "forward")
        unread = lengths is not None or direction == "reverse" or attributes.get("layout") or len(inputs) > 7
        if unread or (kind == "GRU" and not attributes.get("linear_before_reset")):
            raise NodeError(
                f"{where}: sequence_lens, direction='reverse', layout=1, peepholes and linear_before_reset=0 are not "
                "supported"
            )
        count = w_ih.shape[0]

        def arranged(blocks: Tensor) -> Tensor:
            return core.cat([blocks[gate * size : (gate + 1) * size] for gate in _GATES[kind]])

        params = []
        for d in range(count):
            params += [arranged(w_ih[d]), arranged(w_hh[d])]
            if bias is not None:
                half = bias.shape[1] // 2
                params += [arranged(bias[d, :half]), arranged(bias[d, half:])]
        zeros = core.zeros([count, x.shape[1], size], dtype=x.dtype)
        hidden = zeros if hidden is None else hidden
        rest = (params, bias is not None, 1, 0.0, False, count == 2, False)
        if kind == "LSTM":
            output, *last = core.lstm(x, [hidden, zeros if cell is None else cell], *rest)
        elif kind == "GRU":
            output, *last = core.gru(x, hidden, *rest)
        else:
            names = {name.lower() for name in attributes.get("activations", ["Tanh"])}
            if len(names) != 1 or not names <= {"tanh", "relu"}:
                raise NodeError(f"{where}: activations {sorted(names)} are not supported")
            output, *last = (core.rnn_tanh if names == {"tanh"} else core.rnn_relu)(x, hidden, *rest)
        time, batch = output.shape[:2]
        return [output.reshape([time, batch, count, size]).permute([0, 2, 1, 3]), *last]

    return call


for _name in _GATES:
    CALLS[_name] = _recurrent(_name)


def _loss(function: Callable[..., Tensor]) -> Function:
    def call(attributes: Attributes, inputs: list[Any], where: str) -> Any:
        x, target, weight = [*map(tensor_of, inputs), None][:3]
        reduction = ("none", "mean", "sum").index(attributes.get("reduction", "mean"))
        return function(x, target, weight, reduction, attributes.get("ignore_index", -100))

    return call


CALLS["NegativeLogLikelihoodLoss"] = _loss(core.nll_loss)
CALLS["SoftmaxCrossEntropyLoss"] = _loss(core.cross_entropy_loss)


@node("GridSample")
def grid_sample(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    modes = {"linear": 0, "bilinear": 0, "nearest": 1, "cubic": 2, "bicubic": 2}
    paddings = ("zeros", "border", "reflection")
    x, grid = inputs
    return core.grid_sampler(
        x,
        grid,
        modes[attributes.get("mode", "linear")],
        paddings.index(attributes.get("padding_mode", "zeros")),
        bool(attributes.get("align_corners", 0)),
    )


@node("Col2Im")
def col2im(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    before, _ = _padding(attributes, 2, where)
    return core._col2im(
        inputs[0],
        ints_of(inputs[1], where),
        ints_of(inputs[2], where),
        _spatial(attributes, "dilations", 2, 1),
        before,
        _spatial(attributes, "strides", 2, 1),
    )
