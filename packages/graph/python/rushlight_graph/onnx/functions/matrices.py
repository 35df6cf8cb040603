"""Products of matrices."""

from __future__ import annotations

import math

from rushlight_graph.onnx.builder import FLOATING, Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import UnsupportedError


@exports("mm", "bmm", "mv", "dot", "matmul")
def matmul(b: Builder, call: Call) -> Val:
    first, second = call.rule.arguments[:2]
    return b.op("MatMul", call.tensor(first), call.tensor(second))


@exports("linear")
def linear(b: Builder, call: Call) -> Val:
    x, weight, bias = call.tensor("input"), call.tensor("weight"), call.optional("bias")
    plain = len(call.value("weight").sizes) == 2
    if call.rank("input") == 2 and plain and bias and x.dtype in FLOATING:
        return b.op("Gemm", x, weight, bias, transB=1)
    product = b.op("MatMul", x, b.transpose(weight, [1, 0]) if plain else weight)
    return b.op("Add", product, bias) if bias else product


def _scaled(b: Builder, value: Val, factor: float) -> Val:
    return value if factor == 1 else b.op("Mul", value, b.scalar(factor, value.dtype))


@exports("addmm", "baddbmm")
def addmm(b: Builder, call: Call) -> Val:
    x = call.tensor("input")
    first, second = (call.tensor(name) for name in call.rule.arguments[1:3])
    alpha, beta = call["alpha"], call["beta"]
    if call.name == "addmm" and x.dtype in FLOATING and beta != 0:
        return b.op("Gemm", first, second, x, alpha=float(alpha), beta=float(beta))
    product = _scaled(b, b.op("MatMul", first, second), alpha)
    # With beta = 0, `input` is ignored, even if it contains NaN.
    return b.op("Add", product, _scaled(b, x, beta)) if beta != 0 else b.expand(product, call.result.sizes)


@exports("einsum")
def einsum(b: Builder, call: Call) -> Val:
    equation = call["equation"].replace(" ", "")
    left, arrow, right = equation.partition("->")
    if not arrow:  # the letters that occur once, in alphabetical order
        letters = left.replace(".", "").replace(",", "")
        right = "..." * ("..." in left) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if "..." in left:
        terms = left.split(",")
        ranks = {
            len(value.sizes) - len(term) + 3
            for value, term in zip(call.values("operands"), terms, strict=True)
            if value is not None and "..." in term
        }
        if len(ranks) > 1:
            raise UnsupportedError("an ellipsis with different numbers of dimensions is not supported")
    operands = [b.cast(tensor, call.result.dtype) for tensor in call.tensors("operands")]
    return b.op("Einsum", *operands, equation=f"{left}->{right}")


@exports("_linalg_slogdet")
def slogdet(b: Builder, call: Call) -> list[Val]:
    made = b.op("Det", call.tensor("A"))
    return [b.op("Sign", made), b.op("Log", b.op("Abs", made))]


@exports("_cdist_rows")
def cdist(b: Builder, call: Call) -> Val:
    rank, p = call.rank("x1"), float(call["p"])
    away = b.op("Sub", b.unsqueeze(call.tensor("x1"), [rank - 1]), b.unsqueeze(call.tensor("x2"), [rank - 2]))
    if p == 2:
        return b.op("Sqrt", b.reduce("ReduceSum", b.op("Mul", away, away), [rank], False))
    away = b.op("Abs", away)
    if p == 0:
        present = b.cast(b.op("Greater", away, b.scalar(0.0, away.dtype)), away.dtype)
        return b.reduce("ReduceSum", present, [rank], False)
    if p == math.inf:
        return b.reduce("ReduceMax", away, [rank], False)
    sums = b.reduce("ReduceSum", b.op("Pow", away, b.scalar(p, away.dtype)), [rank], False)
    return b.op("Pow", sums, b.scalar(1 / p, away.dtype))


@exports("_linalg_det")
def det(b: Builder, call: Call) -> Val:
    return b.op("Det", call.tensor("A"))


@exports("scaled_dot_product_attention")
def attention(b: Builder, call: Call) -> Val:
    query, key, value = (call.tensor(name) for name in ("query", "key", "value"))
    if call["dropout_p"]:
        raise UnsupportedError("draws random numbers\nhint: call eval() on the model before it is exported")
    queries, keys = call.value("query").sizes, call.value("key").sizes
    rank = len(queries)
    dtype = query.dtype
    if call["enable_gqa"] and queries[-3] != keys[-3]:
        times = queries[-3] // keys[-3]

        def spread(heads: Val, sizes: list) -> Val:
            wide = b.expand(b.unsqueeze(heads, [rank - 2]), [*sizes[:-2], times, *sizes[-2:]])
            return b.reshape(wide, [*sizes[:-3], queries[-3], *sizes[-2:]])

        key = spread(key, list(keys))
        value = spread(value, list(call.value("value").sizes))
    scale = 1 / math.sqrt(queries[-1]) if call["scale"] is None else call["scale"]
    order = [*range(len(keys) - 2), len(keys) - 1, len(keys) - 2]
    scores = b.op("MatMul", _scaled(b, query, scale), b.transpose(key, order))
    mask = call.optional("attn_mask")
    kept = mask if mask and mask.dtype == "bool" else None
    if mask and mask.dtype != "bool":
        scores = b.op("Add", scores, b.cast(mask, dtype))
    if call["is_causal"]:
        square = b.op("ConstantOfShape", b.ints([queries[-2], keys[-2]]), dtype="int64", value=_one())
        causal = b.cast(b.op("Trilu", square, upper=0), "bool")
        kept = b.op("And", kept, causal) if kept else causal
    if kept:
        lowest = {"float16": -65504.0, "bfloat16": -3.0e38, "float32": -3.4e38, "float64": -1.7e308}[dtype]
        scores = b.op("Where", kept, scores, b.scalar(lowest, dtype))
    weights = b.op("Softmax", scores, axis=-1)
    if kept:  # a query for which all keys are masked has a result of zeros
        weights = b.op("Where", kept, weights, b.scalar(0.0, dtype))
    return b.op("MatMul", weights, value)


def _one() -> object:
    import rushlight_core as core

    return core.ones(1, dtype=core.int64)
