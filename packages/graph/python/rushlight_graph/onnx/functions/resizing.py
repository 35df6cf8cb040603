"""Interpolation."""

from __future__ import annotations

import rushlight_core as core
from rushlight_graph.onnx.builder import Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import Size, UnsupportedError


@exports("_resample")
def resample(b: Builder, call: Call) -> Val:
    x, dim, size, mode = call.tensor("input"), call.dim("dim"), call["size"], call["mode"]
    align, scale, antialias = call["align_corners"], call["scale"], call["antialias"]
    before = call.value("input").sizes[dim]
    if isinstance(size, Size) or isinstance(before, Size):
        return _resize(b, call, x, dim, mode, align, scale, antialias)
    # Apply the operator to a row of indices to find the position of each result (modes 0 and 1), or to unit vectors
    # to find the weights of each result.
    if mode < 2:
        positions = core._resample(
            core.arange(float(before)).reshape(1, -1), 1, size, mode, align, scale, antialias
        )
        return b.op("Gather", x, b.constant(positions[0].to(core.int64)), axis=dim)
    matrix = core._resample(core.eye(before), 1, size, mode, align, scale, antialias)
    rank = call.rank("input")
    order = [d for d in range(rank) if d != dim] + [dim]
    made = b.op("MatMul", b.transpose(x, order), b.cast(b.constant(matrix), x.dtype))
    return b.transpose(made, [order.index(d) for d in range(rank)])


def _resize(
    b: Builder, call: Call, x: Val, dim: int, mode: int, align: bool, scale: float | None, antialias: bool
) -> Val:
    if antialias and b.opset < 18:
        raise UnsupportedError("antialias needs opset_version 18")
    rank = call.rank("input")
    if scale is None:
        given: tuple[Val | None, ...] = (None, None, b.ints(call.result.sizes))
    else:
        scales = [1.0] * rank
        scales[dim] = scale
        given = (None, b.constant(core.tensor(scales)), None)
    coordinates = "asymmetric" if mode == 0 else "align_corners" if align else "half_pixel"
    return b.op(
        "Resize",
        x,
        *given,
        mode=("nearest", "nearest", "linear", "cubic")[mode],
        nearest_mode=("floor", "round_prefer_ceil", None, None)[mode],
        coordinate_transformation_mode=coordinates,
        cubic_coeff_a=(-0.5 if antialias else -0.75) if mode == 3 else None,
        antialias=1 if antialias else None,
    )


@exports("_grid_sample")
def grid_sample(b: Builder, call: Call) -> Val:
    x, grid = call.tensor("input"), call.tensor("grid")
    spatial = call.rank("input") - 2
    if spatial == 3 and b.opset < 20:
        raise UnsupportedError("volumes need opset_version 20")
    modes = ("linear", "nearest", "cubic") if b.opset >= 20 else ("bilinear", "nearest", "bicubic")
    return b.op(
        "GridSample",
        x,
        grid,
        mode=modes[call["mode"]],
        padding_mode=("zeros", "border", "reflection")[call["padding"]],
        align_corners=int(call["align_corners"]),
    )
