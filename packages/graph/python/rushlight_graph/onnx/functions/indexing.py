"""Indexing and scattering."""

from __future__ import annotations

import math

from rushlight_graph.onnx.builder import FLOATING, Builder, Val
from rushlight_graph.onnx.calls import Call, Exported, exports
from rushlight_graph.onnx.graph import Size, UnsupportedError


@exports("embedding")
def embedding(b: Builder, call: Call) -> Val:
    return b.op("Gather", call.tensor("weight"), call.tensor("indices"), axis=0)


@exports("_embedding_bag")
def embedding_bag(b: Builder, call: Call) -> Val:
    padding = call["padding_idx"]
    weight, bags, index = call.tensor("weight"), b.cast(call.tensor("bags"), "int64"), call.tensor("indices")
    rows = b.op("Gather", weight, index, axis=0)
    if padding >= 0:
        counts = b.op("Not", b.op("Equal", index, b.scalar(padding, index.dtype)))
        rows = b.op("Mul", rows, b.cast(b.unsqueeze(counts, [1]), rows.dtype))
    call["count"]
    zeros = b.expand(b.scalar(0.0, weight.dtype), call.result.sizes)
    positions = b.expand(
        b.unsqueeze(bags, [1]), [*call.value("indices").sizes, call.value("weight").sizes[1]]
    )
    sums = b.op("ScatterElements", zeros, positions, rows, axis=0, reduction="add")
    return b.op("Div", sums, b.scalar(call["divisor"], weight.dtype))


@exports("index_select")
def index_select(b: Builder, call: Call) -> Val:
    x, index = call.tensor("input"), call.tensor("index")
    if not call.rank("input"):
        call["dim"]
        return x
    if not call.rank("index"):
        index = b.unsqueeze(index, [0])
    return b.op("Gather", x, index, axis=call.dim("dim"))


@exports("take")
def take(b: Builder, call: Call) -> Val:
    return b.op("Gather", b.flat(call.tensor("input")), call.tensor("index"), axis=0)


def _with_dimension(b: Builder, call: Call, *names: str) -> list[Val]:
    """Return the tensor arguments called `names`. Those without dimensions get a dimension of size 1."""
    return [call.tensor(name) if call.rank(name) else b.unsqueeze(call.tensor(name), [0]) for name in names]


@exports("gather")
def gather(b: Builder, call: Call) -> Val:
    x, index = _with_dimension(b, call, "input", "index")
    made = b.op("GatherElements", x, b.cast(index, "int64"), axis=call.dim("dim"))
    return made if call.rank("index") else b.squeeze(made, [0])


def _scattered(
    b: Builder,
    call: Call,
    source: Val,
    source_sizes: tuple[int | Size, ...],
    reduction: str,
    into: Val | None = None,
) -> Val:
    """Scatter `source` into `into`, at the positions in the argument `index`.

    If `into` is None, scatter into the argument `input`."""
    x, index = _with_dimension(b, call, "input", "index")
    if into is not None:
        x = into if call.rank("input") else b.unsqueeze(into, [0])
    dim = call.dim("dim")
    sizes = call.value("index").sizes or (1,)
    if 0 in [size for size in sizes if not isinstance(size, Size)]:
        return x if call.rank("input") else b.squeeze(x, [0])
    source = b.cast(source, x.dtype)
    if not source_sizes:
        source, source_sizes = b.unsqueeze(source, [0]), (1,)
    for d, (size, wanted) in enumerate(zip(source_sizes, sizes, strict=True)):
        if size != wanted:
            source = b.slice(source, d, 0, wanted)
    made = b.op("ScatterElements", x, b.cast(index, "int64"), source, axis=dim, reduction=reduction)
    return made if call.rank("input") else b.squeeze(made, [0])


@exports("scatter_", "scatter_add_")
def scatter(b: Builder, call: Call) -> Val:
    reduction = "add" if "add" in call.name else "none"
    return _scattered(b, call, call.tensor("src"), call.value("src").sizes, reduction)


@exports("scatter_.value")
def scatter_value(b: Builder, call: Call) -> Val:
    sizes = call.value("index").sizes
    number = b.scalar(call["value"], call.result.dtype)
    return _scattered(b, call, b.expand(number, sizes or (1,)) if sizes else number, sizes, "none")


@exports("_scatter_reduce_")
def scatter_reduce(b: Builder, call: Call) -> Val:
    """Scatter with a reduction. If `include_self` is false, first set the elements at the index to the neutral element."""
    reductions = {
        "sum": "add",
        "mean": "add",
        "prod": "mul",
        "amax": "max",
        "amin": "min",
        "add": "add",
        "multiply": "mul",
    }
    reduce, include = call["reduce"], call["include_self"]
    call["caller"]
    reduction, dtype, sizes = reductions[reduce], call.result.dtype, call.value("src").sizes
    if reduction in ("max", "min") and b.opset < 18:
        raise UnsupportedError(f"the reduction {reduce!r} needs opset_version 18")
    if reduce == "mean" and dtype not in FLOATING:
        raise UnsupportedError(f"the reduction 'mean' is not supported for dtype {dtype}")
    if not include:
        if reduction in ("max", "min") and dtype not in FLOATING:
            raise UnsupportedError(
                f"the reduction {reduce!r} with include_self=False is not supported for dtype {dtype}"
            )
        neutral = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf}[reduction]
        cleared = b.expand(b.scalar(neutral, dtype), sizes or (1,))
        x = _scattered(b, call, cleared, sizes or (1,), "none")
    else:
        x = call.tensor("input")
    made = _scattered(b, call, call.tensor("src"), sizes, reduction, x)
    if reduce != "mean":
        return made
    one = b.scalar(1.0, dtype)
    ones = b.expand(one, call.result.sizes)
    added = b.expand(one, sizes or (1,))
    if not include:  # divide elements without source elements by 1
        counts = _scattered(
            b, call, b.expand(b.scalar(0.0, dtype), sizes or (1,)), sizes or (1,), "none", ones
        )
        counts = _scattered(b, call, added, sizes or (1,), "add", counts)
    else:
        counts = _scattered(b, call, added, sizes or (1,), "add", ones)
    return b.op("Div", made, counts)


def _along(b: Builder, call: Call, sizes: tuple[int | Size, ...]) -> Val:
    """Return the 1-d argument `index` of index_add_ or a similar operator, expanded to the shape `sizes`."""
    dim, rank = call.dim("dim"), len(sizes)
    index = b.cast(call.tensor("index"), "int64")
    if not call.rank("index"):
        index = b.unsqueeze(index, [0])
    return b.expand(b.unsqueeze(index, [d for d in range(rank) if d != dim]), sizes)


@exports("index_add_", "index_copy_")
def index_add(b: Builder, call: Call) -> Val:
    x, source = _with_dimension(b, call, "input", "source")
    sizes = call.value("source").sizes or (1,)
    if call.name == "index_add_":
        alpha = call["alpha"]
        source = b.op("Mul", source, b.scalar(alpha, source.dtype)) if alpha != 1 else source
        reduction = "add"
    else:
        reduction = "none"
    made = b.op(
        "ScatterElements",
        x,
        _along(b, call, sizes),
        b.cast(source, x.dtype),
        axis=call.dim("dim"),
        reduction=reduction,
    )
    return made if call.rank("input") else b.squeeze(made, [0])


@exports("index_fill_")
def index_fill(b: Builder, call: Call) -> Val:
    (x,) = _with_dimension(b, call, "input")
    sizes = list(call.value("input").sizes or (1,))
    count = call.value("index").sizes
    sizes[call.dim("dim")] = count[0] if count else 1
    value = b.expand(b.scalar(call["value"], x.dtype), sizes)
    made = b.op("ScatterElements", x, _along(b, call, tuple(sizes)), value, axis=call.dim("dim"))
    return made if call.rank("input") else b.squeeze(made, [0])


def _broadcast(sizes: list[tuple[int | Size, ...]]) -> list[int | Size]:
    rank = max(len(size) for size in sizes)
    made: list[int | Size] = [1] * rank
    for size in sizes:
        for i, item in enumerate(size, rank - len(size)):
            if isinstance(item, Size) or item != 1:
                made[i] = item
    return made


def _positions(b: Builder, call: Call) -> tuple[list[int], Val, list[int | Size], bool]:
    """Return the indexed dimensions, the broadcast indices stacked along a new last dimension, and more.

    The third item is the shape to which the indices are broadcast. The fourth item states whether the indexed
    dimensions are adjacent."""
    given, known = call.optionals("indices"), call.values("indices")
    if any(value is not None and value.dtype in ("bool", "uint8") for value in known):
        raise UnsupportedError("masks as indices are not supported")
    dims = [d for d, index in enumerate(given) if index is not None]
    shape = _broadcast([value.sizes for value in known if value is not None])
    parts = []
    for d in dims:
        index, value = given[d], known[d]
        assert index is not None
        assert value is not None
        index = b.cast(index, "int64")
        if list(value.sizes) != shape:
            index = b.expand(index, shape)
        parts.append(b.unsqueeze(index, [len(shape)]))
    positions = b.op("Concat", *parts, axis=len(shape)) if len(parts) > 1 else parts[0]
    return dims, positions, shape, dims == list(range(dims[0], dims[-1] + 1))


@exports("_index")
def index(b: Builder, call: Call) -> Val:
    x, rank = call.tensor("input"), call.rank("input")
    dims, positions, shape, neighbours = _positions(b, call)
    if len(dims) == 1:
        only = call.optionals("indices")[dims[0]]
        return b.op("Gather", x, only, axis=dims[0])
    rest = [d for d in range(rank) if d not in dims]
    made = b.op("GatherND", b.transpose(x, [*dims, *rest]), positions)
    if not neighbours or dims[0] == 0:
        return made
    # The dimensions of the indices come first in the result. Move them to the place of the indexed dimensions.
    count, before = len(shape), dims[0]
    order = [*range(count, count + before), *range(count), *range(count + before, count + len(rest))]
    return b.transpose(made, order)


@exports("index_put", "index_put_")
def index_put_or_mask(b: Builder, call: Call) -> Exported:
    """Write values to the elements at the indices, or one number to all elements for which a mask is True."""
    known = call.values("indices")
    masks = [d for d, value in enumerate(known) if value is not None and value.dtype in ("bool", "uint8")]
    if not masks:
        return index_put(b, call)
    sizes = call.value("values").sizes
    if any(value is not None for d, value in enumerate(known) if d != masks[0]) or any(
        size != 1 for size in sizes
    ):
        raise UnsupportedError(
            "the number of elements to write depends on values of a tensor, which is not supported"
        )
    x, values, accumulate = call.tensor("input"), call.tensor("values"), call["accumulate"]
    mask, shape = call.optionals("indices")[masks[0]], known[masks[0]]
    assert mask is not None
    assert shape is not None
    rank = len(shape.sizes)
    # The first dimension of the mask corresponds to the input dimension given by its position among the indices.
    mask = b.unsqueeze(b.cast(mask, "bool"), [*range(masks[0]), *range(masks[0] + rank, call.rank("input"))])
    value = b.op("Reshape", b.cast(values, x.dtype), b.ints([]))
    return b.op("Where", mask, b.op("Add", x, value) if accumulate else value, x)


@exports("_index_put_")
def index_put(b: Builder, call: Call) -> Val:
    x, values, rank = call.tensor("input"), call.tensor("values"), call.rank("input")
    dims, positions, shape, neighbours = _positions(b, call)
    sizes = call.value("input").sizes
    rest = [d for d in range(rank) if d not in dims]
    before = dims[0] if neighbours else 0
    # The shape of x[indices], to which the values are broadcast.
    kept = [sizes[d] for d in rest]
    wide = b.expand(b.cast(values, x.dtype), [*kept[:before], *shape, *kept[before:]])
    count = len(shape)
    wide = b.transpose(
        wide, [*range(before, before + count), *range(before), *range(before + count, count + len(rest))]
    )
    order = [*dims, *rest]
    made = b.op(
        "ScatterND", b.transpose(x, order), positions, wide, reduction="add" if call["accumulate"] else "none"
    )
    return b.transpose(made, [order.index(d) for d in range(rank)])


@exports("masked_scatter_")
def masked_scatter(b: Builder, call: Call) -> Val:
    x, source, sizes = call.tensor("input"), call.tensor("source"), call.value("input").sizes
    mask = b.expand(b.cast(call.tensor("mask"), "bool"), sizes)
    counted = b.op("CumSum", b.cast(b.flat(mask), "int64"), b.scalar(0, "int64"))
    positions = b.op("Max", b.op("Sub", counted, b.scalar(1, "int64")), b.scalar(0, "int64"))
    taken = b.op("Gather", b.flat(source), positions, axis=0)
    return b.op("Where", mask, b.reshape(b.cast(taken, x.dtype), sizes), x)


@exports("put_")
def put(b: Builder, call: Call) -> Val:
    made = b.op(
        "ScatterElements",
        b.flat(call.tensor("input")),
        b.flat(b.cast(call.tensor("index"), "int64")),
        b.flat(b.cast(call.tensor("source"), call.result.dtype)),
        axis=0,
        reduction="add" if call["accumulate"] else "none",
    )
    return b.reshape(made, call.value("input").sizes)


@exports("_searchsorted")
def searchsorted(b: Builder, call: Call) -> Val:
    """Return the number of elements of the sequence that come before each value."""
    if call.has("sorter"):
        raise UnsupportedError("the argument sorter is not supported")
    call["out_int32"]
    sequence, x, rank = call.tensor("sorted_sequence"), call.tensor("input"), call.rank("input")
    if call.rank("sorted_sequence") > 1:
        sequence = b.unsqueeze(sequence, [rank - 1])
    values = b.unsqueeze(x, [rank])
    before = b.op("LessOrEqual" if call["right"] else "Less", sequence, values)
    return b.cast(b.reduce("ReduceSum", b.cast(before, "int64"), [rank], False), call.result.dtype)


@exports("_isin_sorted")
def isin(b: Builder, call: Call) -> Val:
    x, rank = call.tensor("input"), call.rank("input")
    same = b.op("Equal", b.unsqueeze(x, [rank]), call.tensor("sorted"))
    found = b.cast(b.reduce("ReduceSum", b.cast(same, "int64"), [rank], False), "bool")
    return b.op("Not", found) if call["invert"] else found
