"""Convolutions."""

from __future__ import annotations

from rushlight_graph.onnx.builder import FLOATING, Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import UnsupportedError


@exports("convolution")
def convolution(b: Builder, call: Call) -> Val:
    x, weight, bias = call.tensor("input"), call.tensor("weight"), call.optional("bias")
    if x.dtype not in FLOATING:
        raise UnsupportedError(f"dtype {x.dtype} is not supported")
    spatial = call.rank("input") - 2

    def each(name: str) -> list[int]:
        given = call[name]
        return [int(item) for item in (given * spatial if len(given) == 1 else given)]

    padding, added = each("padding"), each("output_padding")
    transposed = call["transposed"]
    return b.op(
        "ConvTranspose" if transposed else "Conv",
        x,
        weight,
        bias,
        kernel_shape=[int(size) for size in call.value("weight").sizes[2:]],
        strides=each("stride"),
        pads=[*padding, *padding],
        dilations=each("dilation"),
        group=call["groups"],
        output_padding=added if transposed and any(added) else None,
    )
