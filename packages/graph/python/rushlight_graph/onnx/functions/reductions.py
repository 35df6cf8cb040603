"""Reductions, sums along a dimension, sorting and softmax."""

from __future__ import annotations

from rushlight_graph.onnx.builder import FLOATING, Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import Size, UnsupportedError

_REDUCTIONS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "prod": "ReduceProd",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "logsumexp": "ReduceLogSumExp",
}


def _dims(call: Call) -> list[int] | None:
    """Return the dimensions over which the call reduces, or None if it reduces over all dimensions."""
    given = call["dim"] if "dim" in call.rule.arguments else None
    if given is None or (given == [] and call.name not in ("logsumexp", "any", "all")):
        return None
    rank = call.rank("input")
    if not rank:
        return None
    return [dim % rank for dim in (given if isinstance(given, list) else [given])]


def _keep(call: Call) -> bool:
    return "keepdim" in call.rule.arguments and call["keepdim"]


@exports(*_REDUCTIONS)
def reduction(b: Builder, call: Call) -> Val:
    if "dtype" in call.rule.arguments:
        call["dtype"]
    x = b.cast(call.tensor("input"), call.result.dtype)
    dims = _dims(call)
    if dims is None and not call.rank("input"):
        _keep(call)
        return x
    sizes = call.value("input").sizes
    if call.name == "mean" and 0 in [size for size in sizes if not isinstance(size, Size)]:
        _keep(call)
        return b.expand(b.scalar(float("nan"), x.dtype), call.result.sizes)  # because runtimes return 0
    return b.reduce(_REDUCTIONS[call.name], x, dims, _keep(call))


@exports("any", "all")
def truth(b: Builder, call: Call) -> Val:
    x, keep, dims = b.cast(call.tensor("input"), "bool"), _keep(call), _dims(call)
    if call.rank("input"):  # ReduceSum also handles inputs without elements
        x = b.op("Not", x) if call.name == "all" else x
        x = b.cast(b.reduce("ReduceSum", b.cast(x, "int64"), dims, keep), "bool")
        x = b.op("Not", x) if call.name == "all" else x
    return b.cast(x, call.result.dtype)


@exports("_norm2")
def norm2(b: Builder, call: Call) -> Val:
    call["dtype"]
    x, keep = b.cast(call.tensor("input"), call.result.dtype), _keep(call)
    if not call.rank("input"):
        call["dim"]
        return b.op("Abs", x)
    return b.op("Sqrt", b.reduce("ReduceSum", b.op("Mul", x, x), _dims(call), keep))


@exports("_nansum", "_count_present")
def nansum(b: Builder, call: Call) -> Val:
    x, keep, dims = call.tensor("input"), _keep(call), _dims(call)
    if "dtype" in call.rule.arguments:
        call["dtype"]
    there = b.op("Equal", x, x)
    if call.name == "_count_present":
        x = b.cast(there, "int64")
    else:
        x = b.op("Where", there, b.cast(x, call.result.dtype), b.scalar(0, call.result.dtype))
    x = b.reduce("ReduceSum", x, dims, keep) if call.rank("input") else x
    return b.cast(x, call.result.dtype)


def _smallest(b: Builder, x: Val, dim: int, count: int | Size) -> list[Val]:
    """Return the smallest elements along a dimension, in ascending order, and their positions."""
    return b.ops("TopK", x, b.ints([count]), dtypes=[x.dtype, "int64"], axis=dim, largest=0, sorted=1)


def _nan_where(b: Builder, x: Val, value: Val, dims: list[int], keep: bool) -> Val:
    """Return `value`, a reduction of `x` over `dims`, with NaN in each element whose slice of `x` contains NaN."""
    if x.dtype not in FLOATING:
        return value
    missing = b.reduce("ReduceSum", b.cast(b.op("IsNaN", x), "int64"), dims, keep)
    return b.op("Where", b.cast(missing, "bool"), b.scalar(float("nan"), x.dtype), value)


@exports("median", "median.dim", "kthvalue")
def kthvalue(b: Builder, call: Call) -> Val | list[Val]:
    x, rank = call.tensor("input"), call.rank("input")
    keep = _keep(call)
    whole = call.name == "median"
    if not rank:
        for name in call.rule.arguments[1:]:
            call[name]
        return x if whole else [x, b.scalar(0, "int64")]
    dim = 0 if whole else call.dim("dim")
    sizes = [] if whole else [call.value("input").sizes[dim]]
    if whole:
        x = b.flat(x)
        sizes = [1]
        for size in call.value("input").sizes:
            sizes[0] = sizes[0] * size
    length = int(sizes[0])
    if not length:
        raise UnsupportedError("a tensor without elements is not supported")
    rank = call["k"] - 1 if call.name == "kthvalue" else (length - 1) // 2
    values, positions = _smallest(b, x, dim, rank + 1)
    at = b.ints([rank]) if keep else b.scalar(rank, "int64")
    found = [b.op("Gather", part, at, axis=dim) for part in (values, positions)]
    if call.name != "kthvalue":
        found[0] = _nan_where(b, x, found[0], [dim], keep)
    return found[0] if whole else found


@exports("count_nonzero")
def count_nonzero(b: Builder, call: Call) -> Val:
    x = b.cast(b.cast(call.tensor("input"), "bool"), "int64")
    return b.reduce("ReduceSum", x, _dims(call), False) if call.rank("input") else x


@exports("max.dim", "min.dim")
def extremum(b: Builder, call: Call) -> list[Val]:
    word = call.name[:3]
    x, dim, keep = call.tensor("input"), call.dim("dim"), _keep(call)
    if not call.rank("input"):
        return [x, b.scalar(0, "int64")]
    values = b.reduce(f"Reduce{word.capitalize()}", x, [dim], keep)
    return [values, b.op(f"Arg{word.capitalize()}", x, axis=dim, keepdims=int(keep))]


@exports("argmax", "argmin")
def argmax(b: Builder, call: Call) -> Val:
    name = "ArgMax" if call.name == "argmax" else "ArgMin"
    x, keep = call.tensor("input"), _keep(call)
    if not call.rank("input"):
        call["dim"]
        return b.scalar(0, "int64")
    if call["dim"] is None:
        found = b.op(name, b.flat(x), axis=0, keepdims=int(keep))
        return b.reshape(found, call.result.sizes) if keep else found
    return b.op(name, x, axis=call.dim("dim"), keepdims=int(keep))


@exports("var", "std")
def var(b: Builder, call: Call) -> Val:
    x, dims, keep, correction = call.tensor("input"), _dims(call), _keep(call), call["correction"]
    sizes = call.value("input").sizes
    away = b.op("Sub", x, b.reduce("ReduceMean", x, dims, True))
    squares = b.reduce("ReduceSum", b.op("Mul", away, away), dims, keep)
    reduced = [sizes[dim] for dim in (range(len(sizes)) if dims is None else dims)]
    if any(isinstance(size, Size) for size in reduced):
        count = b.op("ReduceProd", b.ints(reduced), keepdims=0)
        divisor = b.op("Sub", b.cast(count, x.dtype), b.scalar(float(correction), x.dtype))
        divisor = b.op("Max", divisor, b.scalar(0.0, x.dtype))
    else:
        number = 1
        for size in reduced:
            number *= int(size)
        divisor = b.scalar(float(max(number - correction, 0)), x.dtype)
    variance = b.op("Div", squares, divisor)
    return b.op("Sqrt", variance) if call.name == "std" else variance


@exports("softmax", "log_softmax", "_softmax", "_log_softmax")
def softmax(b: Builder, call: Call) -> Val:
    if "dtype" in call.rule.arguments:
        call["dtype"]
    x = b.cast(call.tensor("input"), call.result.dtype)
    name = "LogSoftmax" if "log" in call.name else "Softmax"
    if not call.rank("input"):
        call["dim"]
        return b.squeeze(b.op(name, b.unsqueeze(x, [0]), axis=0), [0])
    return b.op(name, x, axis=call.dim("dim"))


@exports("cumsum")
def cumsum(b: Builder, call: Call) -> Val:
    call["dtype"]
    x = b.cast(call.tensor("input"), call.result.dtype)
    if not call.rank("input"):
        call["dim"]
        return x
    return b.op("CumSum", x, b.scalar(call.dim("dim"), "int64"))


@exports("cumprod")
def cumprod(b: Builder, call: Call) -> Val:
    call["dtype"]
    x = b.cast(call.tensor("input"), call.result.dtype)
    if not call.rank("input"):
        call["dim"]
        return x
    # The exponential of a sum of logarithms would lose digits. Instead, each result is the product of a row that has
    # the elements up to its position, followed by ones. A mask that is a lower triangle selects the elements.
    dim, rank = call.dim("dim"), call.rank("input")
    length = call.value("input").sizes[dim]
    if isinstance(length, Size) or length > 256 or x.dtype not in FLOATING:
        raise UnsupportedError(
            "a cumulative product needs a floating dtype and a fixed size of at most 256 along its dimension"
        )
    order = [d for d in range(rank) if d != dim] + [dim]
    rows = b.unsqueeze(b.transpose(x, order), [rank - 1])  # (..., 1, length)
    import rushlight_core as core

    mask = b.constant(core.ones((length, length)).tril().to(core.bool))
    kept = b.op("Where", mask, rows, b.scalar(1.0, x.dtype))
    made = b.reduce("ReduceProd", kept, [rank], False)
    return b.transpose(made, [order.index(d) for d in range(rank)])


@exports("sort")
def sort(b: Builder, call: Call) -> list[Val]:
    x, dim = call.tensor("input"), call.dim("dim")
    descending = call["descending"]
    if not call.rank("input"):
        return [x, b.scalar(0, "int64")]
    length = call.value("input").sizes[dim]
    return b.ops(
        "TopK", x, b.ints([length]), dtypes=[x.dtype, "int64"], axis=dim, largest=int(descending), sorted=1
    )


@exports("topk")
def topk(b: Builder, call: Call) -> list[Val]:
    x, largest, ordered = call.tensor("input"), call["largest"], call["sorted"]
    count = b.ints([call["k"]])
    dim = call.dim("dim")
    if not call.rank("input"):
        raise UnsupportedError("a 0-d tensor is not supported")
    return b.ops(
        "TopK", x, count, dtypes=[x.dtype, "int64"], axis=dim, largest=int(largest), sorted=int(ordered)
    )
