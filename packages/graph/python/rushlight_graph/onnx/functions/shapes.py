"""Export operators that reshape, permute, slice, join and repeat tensors."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core._C import _call_boxed
from rushlight_graph.onnx.builder import Builder, Val, fixed_sizes
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import Size, UnsupportedError


@exports(
    *("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as", "ravel", "squeeze", "squeeze.dim", "unsqueeze"),
    *("squeeze_", "squeeze_.dim", "unsqueeze_"),
)  # fmt: skip
def reshape(b: Builder, call: Call) -> Val:
    for name in call.rule.arguments[1:]:
        call[name]
    x = call.tensor("input")
    if "unsqueeze" in call.name:
        return b.unsqueeze(x, [call["dim"] % (call.rank("input") + 1)])
    if call.value("input").sizes == call.result.sizes:
        return x
    return b.reshape(x, call.result.sizes)


@exports("transpose", "swapaxes", "transpose_", "swapaxes_", "t", "t_")
def transpose(b: Builder, call: Call) -> Val:
    rank = call.rank("input")
    order = list(range(rank))
    if call.name in ("t", "t_"):
        order.reverse()
    elif rank:
        first, second = (call.dim(name) for name in call.rule.arguments[1:3])
        order[first], order[second] = order[second], order[first]
    else:
        for name in call.rule.arguments[1:3]:
            call[name]
    return b.transpose(call.tensor("input"), order)


@exports("permute")
def permute(b: Builder, call: Call) -> Val:
    return b.transpose(call.tensor("input"), call.dims("dims"))


@exports("movedim")
def movedim(b: Builder, call: Call) -> Val:
    source, destination = call.dims("source"), call.dims("destination")
    rest = iter(dim for dim in range(call.rank("input")) if dim not in source)
    positions = dict(zip(destination, source, strict=True))
    return b.transpose(
        call.tensor("input"),
        [positions[i] if i in positions else next(rest) for i in range(call.rank("input"))],
    )


@exports("expand", "expand_as", "broadcast_to")
def expand(b: Builder, call: Call) -> Val:
    for name in call.rule.arguments[1:2]:
        call[name]
    return b.expand(call.tensor("input"), call.result.sizes)


@exports("repeat")
def repeat(b: Builder, call: Call) -> Val:
    repeats = call["repeats"]
    x = b.unsqueeze(call.tensor("input"), list(range(len(repeats) - call.rank("input"))))
    return b.op("Tile", x, b.ints(repeats))


@exports("select")
def select(b: Builder, call: Call) -> Val:
    return b.op("Gather", call.tensor("input"), b.scalar(call["index"], "int64"), axis=call.dim("dim"))


@exports("slice")
def slice_(b: Builder, call: Call) -> Val:
    start, end, step = call["start"], call["end"], call["step"]
    return b.slice(
        call.tensor("input"),
        call.dim("dim"),
        0 if start is None else start,
        2**63 - 1 if end is None else end,
        step,
    )


@exports("narrow")
def narrow(b: Builder, call: Call) -> Val:
    start, length, dim = call["start"], call["length"], call.dim("dim")
    size = call.value("input").sizes[dim]
    if isinstance(start, Size) or isinstance(length, Size) or (start < 0 and isinstance(size, Size)):
        begin = b.ints([start])
        end = b.op("Add", begin, b.ints([length]))
        return b.op("Slice", call.tensor("input"), begin, end, b.ints([dim]))
    start = start + size if start < 0 else start
    return b.slice(call.tensor("input"), dim, start, start + length)


@exports("diagonal", "unfold", "as_strided")
def rearranged(b: Builder, call: Call) -> Val:
    """Export an operator as Gather, by applying the operator to a tensor of the positions 0, 1, 2, ..."""
    sizes = fixed_sizes(call.value("input"))
    count = 1
    for size in sizes:
        count *= size
    positions = core.arange(count).reshape(sizes)
    arguments = [call[name] for name in call.rule.arguments[1:]]
    if any(
        isinstance(item, Size) for part in arguments for item in (part if isinstance(part, list) else [part])
    ):
        raise UnsupportedError("an argument depends on a dynamic size, which is not supported")
    made = _call_boxed(call.name, positions, *arguments).contiguous()
    return b.op("Gather", b.flat(call.tensor("input")), b.constant(made), axis=0)


@exports("flip")
def flip(b: Builder, call: Call) -> Val:
    dims = call.dims("dims")
    if not dims or not call.rank("input"):
        return call.tensor("input")
    count = len(dims)
    return b.op(
        "Slice",
        call.tensor("input"),
        b.ints([-1] * count),
        b.ints([-(2**63) + 1] * count),
        b.ints(dims),
        b.ints([-1] * count),
    )


@exports("tril", "triu")
def tril(b: Builder, call: Call) -> Val:
    diagonal = b.scalar(call["diagonal"], "int64")
    return b.op("Trilu", call.tensor("input"), diagonal, upper=int(call.name == "triu"))


@exports("cat")
def cat(b: Builder, call: Call) -> Val:
    values = call.values("tensors")
    rank = len(call.result.sizes)
    # Skip tensors of shape (0,), whatever the shapes of the other tensors.
    kept = [
        b.cast(tensor, call.result.dtype)
        for tensor, value in zip(call.tensors("tensors"), values, strict=True)
        if value is not None and len(value.sizes) == rank and (rank > 1 or value.sizes != (0,))
    ]
    dim = call["dim"] % rank
    if not kept:
        return b.cast(call.tensors("tensors")[0], call.result.dtype)
    return b.op("Concat", *kept, axis=dim)


@exports("stack")
def stack(b: Builder, call: Call) -> Val:
    dim = call["dim"] % len(call.result.sizes)
    parts = [b.unsqueeze(b.cast(tensor, call.result.dtype), [dim]) for tensor in call.tensors("tensors")]
    return b.op("Concat", *parts, axis=dim)


@exports("constant_pad_nd", "_pad")
def pad(b: Builder, call: Call) -> Val:
    pads = call["pad"]
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    mode = "constant" if call.name == "constant_pad_nd" else modes[call["mode"]]
    rank = call.rank("input")
    if not pads:
        return call.tensor("input")
    if mode == "wrap" and b.opset < 19:
        raise UnsupportedError("circular padding needs opset_version 19")
    before, after = [0] * rank, [0] * rank
    for i in range(len(pads) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    x = call.tensor("input")
    value = b.scalar(call["value"], x.dtype) if mode == "constant" else None
    return b.op("Pad", x, b.ints([*before, *after]), value, mode=mode)


@exports("diagonal_backward")
def on_diagonal(b: Builder, call: Call) -> Val:
    """Return a tensor of zeros with another tensor on a diagonal."""
    sizes = fixed_sizes(call.result)
    count = 1
    for size in sizes:
        count *= size
    call["input_sizes"]
    positions = core.diagonal(core.arange(count).reshape(sizes), call["offset"], call["dim1"], call["dim2"])
    x = call.tensor("grad")
    zeros = b.constant(core.zeros(count, dtype=getattr(core, x.dtype)))
    made = b.op("ScatterElements", zeros, b.constant(positions.reshape(-1)), b.flat(x), axis=0)
    return b.reshape(made, sizes)


@exports("_im2col")
def im2col(b: Builder, call: Call) -> Val:
    sizes = fixed_sizes(call.value("input"))
    count = 1
    for size in sizes:
        count *= size
    # Position 0 refers to a zero that is put in front, for the padding.
    windows = [call[name] for name in ("kernel_size", "dilation", "padding", "stride")]
    positions = _call_boxed("_im2col", core.arange(1, count + 1).reshape(sizes), *windows)
    x = call.tensor("input")
    zero = b.constant(core.zeros(1, dtype=getattr(core, x.dtype)))
    return b.op("Gather", b.op("Concat", zero, b.flat(x), axis=0), b.constant(positions), axis=0)


@exports("_col2im")
def col2im(b: Builder, call: Call) -> Val:
    if b.opset < 18:
        raise UnsupportedError("needs Col2Im, which exists from opset_version 18 on")
    x, batched = call.tensor("input"), call.rank("input") == 3
    padding = call["padding"]
    made = b.op(
        "Col2Im",
        x if batched else b.unsqueeze(x, [0]),
        b.ints(call["output_size"]),
        b.ints(call["kernel_size"]),
        dilations=call["dilation"],
        pads=[*padding, *padding],
        strides=call["stride"],
    )
    return made if batched else b.squeeze(made, [0])
