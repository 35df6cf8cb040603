"""Pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_core as core
from rushlight_graph.onnx.builder import FLOATING, Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import Size, UnsupportedError


def _windows(call: Call, spatial: int) -> tuple[dict[str, Any], list[int]]:
    """Return the attributes of a pooling node, and the padding that `ceil_mode` adds at the end of each dimension."""
    kernel = call["kernel_size"]
    stride, padding = call["stride"] or kernel, call["padding"]
    dilation = call["dilation"] if "dilation" in call.rule.arguments else [1] * spatial
    added = [0] * spatial
    if call["ceil_mode"]:
        sizes, results = call.value("input").sizes[-spatial:], call.result.sizes[-spatial:]
        if any(isinstance(size, Size) for size in (*sizes, *results)):
            raise UnsupportedError("ceil_mode with dynamic sizes is not supported")
        for i in range(spatial):
            reached = (results[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1
            added[i] = max(0, reached - sizes[i] - 2 * padding[i])
    return {"kernel_shape": kernel, "strides": stride, "pads": padding, "dilations": dilation}, added


def _batched(b: Builder, call: Call, spatial: int, pool: Callable[[Val], list[Val]]) -> list[Val]:
    x = call.tensor("input")
    if call.rank("input") == spatial + 2:
        return pool(x)
    return [b.squeeze(made, [0]) for made in pool(b.unsqueeze(x, [0]))]


@exports("max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(b: Builder, call: Call) -> list[Val]:
    spatial = 3 if "3d" in call.name else 2
    attributes, added = _windows(call, spatial)
    padding = attributes.pop("pads")
    attributes["pads"] = [*padding, *(pad + more for pad, more in zip(padding, added, strict=True))]
    dtype = call.result.dtype
    if dtype not in (*FLOATING, "int8", "uint8"):
        raise UnsupportedError(f"dtype {dtype} is not supported")

    def pool(x: Val) -> list[Val]:
        if "indices" not in call.name:
            return [b.op("MaxPool", x, **attributes)]
        values, positions = b.ops("MaxPool", x, dtypes=[dtype, "int64"], **attributes)
        # ONNX counts positions from the first element of the batch.
        area = b.op("ReduceProd", b.ints(call.value("input").sizes[-spatial:]), keepdims=0)
        return [values, b.op("Mod", positions, area)]

    return _batched(b, call, spatial, pool)


@exports("avg_pool2d", "avg_pool3d")
def avg_pool(b: Builder, call: Call) -> list[Val]:
    spatial = 3 if "3d" in call.name else 2
    attributes, added = _windows(call, spatial)
    del attributes["dilations"]
    padding = attributes.pop("pads")
    counts, divisor = call["count_include_pad"], call["divisor_override"]
    if call.result.dtype not in FLOATING:
        raise UnsupportedError(f"dtype {call.result.dtype} is not supported")

    def pool(x: Val) -> list[Val]:
        pads = list(padding)
        if any(padding) and (counts or divisor is not None):
            # Pad explicitly, so that these zeros count as elements; the padding that ceil_mode adds does not count.
            x = b.op("Pad", x, b.ints([0, 0, *padding, 0, 0, *padding]))
            pads = [0] * spatial
        whole = divisor is not None
        made = b.op(
            "AveragePool",
            x,
            pads=[*pads, *(pad + more for pad, more in zip(pads, added, strict=True))],
            count_include_pad=int(whole),
            **attributes,
        )
        if whole:
            number = 1.0
            for size in attributes["kernel_shape"]:
                number *= size
            made = b.op("Mul", made, b.scalar(number / divisor, made.dtype))
        return [made]

    return _batched(b, call, spatial, pool)


@exports("adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_avg_pool(b: Builder, call: Call) -> list[Val]:
    spatial = 3 if "3d" in call.name else 2
    results = call["output_size"]
    sizes = call.value("input").sizes[-spatial:]
    if all(size == 1 for size in results):
        rank = call.rank("input")
        if 0 in [size for size in sizes if not isinstance(size, Size)]:
            return [
                b.expand(b.scalar(float("nan"), call.result.dtype), call.result.sizes)
            ]  # runtimes return 0
        return [b.reduce("ReduceMean", call.tensor("input"), list(range(rank - spatial, rank)), True)]
    if any(isinstance(size, Size) for size in sizes):
        raise UnsupportedError("windows that depend on a dynamic size are not supported")
    if all(size % wanted == 0 for size, wanted in zip(sizes, results, strict=True)):
        windows = [size // wanted for size, wanted in zip(sizes, results, strict=True)]
        return _batched(
            b, call, spatial, lambda x: [b.op("AveragePool", x, kernel_shape=windows, strides=windows)]
        )
    # The windows have different sizes. So multiply by a matrix along each dimension. Pooling the unit vectors gives the
    # matrix.
    x, rank = call.tensor("input"), call.rank("input")
    for i, (size, wanted) in enumerate(zip(sizes, results, strict=True)):
        means = core.adaptive_avg_pool1d(core.eye(int(size)).unsqueeze(0), [wanted])[0]
        matrix = b.cast(b.constant(means), x.dtype)
        dim = rank - spatial + i
        order = [d for d in range(rank) if d != dim] + [dim]
        x = b.op("MatMul", b.transpose(x, order), matrix)
        x = b.transpose(x, [order.index(d) for d in range(rank)])
    return [x]


@exports("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(b: Builder, call: Call) -> list[Val]:
    spatial = 3 if "3d" in call.name else 2
    results = call["output_size"]
    sizes = call.value("input").sizes[-spatial:]
    if any(isinstance(size, Size) for size in sizes):
        raise UnsupportedError("windows that depend on a dynamic size are not supported")
    if any(size % wanted for size, wanted in zip(sizes, results, strict=True)):
        raise UnsupportedError("windows of different sizes are not supported")
    windows = [size // wanted for size, wanted in zip(sizes, results, strict=True)]
    dtype = call.result.dtype

    def pool(x: Val) -> list[Val]:
        values, positions = b.ops(
            "MaxPool", x, dtypes=[dtype, "int64"], kernel_shape=windows, strides=windows
        )
        area = b.op("ReduceProd", b.ints(sizes), keepdims=0)
        return [values, b.op("Mod", positions, area)]

    return _batched(b, call, spatial, pool)
