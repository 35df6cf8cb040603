"""Export conversions of dtypes, and element-wise operators whose ONNX nodes depend on dtypes or options."""

from __future__ import annotations

from rushlight_graph.onnx.builder import FLOATING, Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import UnsupportedError


def _is_floating(call: Call) -> bool:
    return call.operand_dtype() in FLOATING


@exports("elu")
def elu(b: Builder, call: Call) -> Val:
    alpha, scale, input_scale = (float(call[name]) for name in ("alpha", "scale", "input_scale"))
    if scale == 1 and input_scale == 1:
        return b.op("Elu", call.tensor("input"), alpha=alpha)
    return call.evaluate(
        "Mul(Where(Greater(input, 0), input, Mul(Sub(Exp(Mul(Min(input, 0), input_scale)), 1), alpha)), scale)"
    )


@exports("gelu", "_gelu", "_gelu_tanh")
def gelu(b: Builder, call: Call) -> Val:
    approximate = call["approximate"] if call.name == "gelu" else "tanh" if "tanh" in call.name else "none"
    x = call.tensor("input")
    if b.opset >= 20:
        return b.op("Gelu", x, approximate=approximate)

    def number(value: float) -> Val:
        return b.scalar(value, x.dtype)

    if approximate == "tanh":
        cube = b.op("Mul", b.op("Mul", b.op("Mul", x, x), x), number(0.044715))
        inner = b.op("Tanh", b.op("Mul", b.op("Add", x, cube), number(0.7978845608028654)))
    else:
        inner = b.op("Erf", b.op("Mul", x, number(0.7071067811865476)))
    return b.op("Mul", b.op("Mul", x, number(0.5)), b.op("Add", inner, number(1.0)))


@exports("floor_divide")
def floor_divide(b: Builder, call: Call) -> Val:
    if _is_floating(call):
        return call.evaluate("Floor(Div(input, other))")
    return call.evaluate("Div(Sub(input, Mod(input, other)), other)")  # Div rounds towards zero


@exports("_div_trunc")
def div_trunc(b: Builder, call: Call) -> Val:
    if not _is_floating(call):
        return call.evaluate("Div(input, other)")  # rounds towards zero
    quotient = call.evaluate("Div(input, other)")
    return b.op("Mul", b.op("Sign", quotient), b.op("Floor", b.op("Abs", quotient)))


@exports("remainder")
def remainder(b: Builder, call: Call) -> Val:
    if _is_floating(call):
        return call.evaluate("Sub(input, Mul(Floor(Div(input, other)), other))")
    return call.evaluate("Mod(input, other)")


@exports("fmax", "fmin")
def fmax(b: Builder, call: Call) -> Val:
    join = "Max" if call.name == "fmax" else "Min"
    if not _is_floating(call):
        return call.evaluate(f"{join}(input, other)")
    return call.evaluate(f"Where(IsNaN(input), other, Where(IsNaN(other), input, {join}(input, other)))")


@exports("bitwise_and", "bitwise_or", "bitwise_xor")
def bitwise(b: Builder, call: Call) -> Val:
    word = call.name.removeprefix("bitwise_").capitalize()
    return call.evaluate(
        f"{word}(input, other)" if call.operand_dtype() == "bool" else f"Bitwise{word}(input, other)"
    )


@exports("bitwise_not")
def bitwise_not(b: Builder, call: Call) -> Val:
    return call.evaluate("Not(input)" if call.operand_dtype() == "bool" else "BitwiseNot(input)")


_INFINITE = {
    "isinf": "Equal(Abs(input), inf)",
    "isposinf": "Equal(input, inf)",
    "isneginf": "Equal(input, -inf)",
    "isfinite": "Less(Abs(input), inf)",
}


@exports(*_INFINITE)
def infinite(b: Builder, call: Call) -> Val:
    if _is_floating(call):
        return call.evaluate(_INFINITE[call.name])
    same = call.evaluate("Equal(input, input)")
    return same if call.name == "isfinite" else b.op("Not", same)


@exports("signbit")
def signbit(b: Builder, call: Call) -> Val:
    if _is_floating(call):  # the sign of a zero is the sign of its reciprocal
        return call.evaluate("Less(Where(Equal(input, 0), Reciprocal(input), input), 0)")
    return call.evaluate("Less(input, 0)")


@exports("copysign")
def copysign(b: Builder, call: Call) -> Val:
    return call.evaluate(
        "Where(Less(Where(Equal(other, 0), Reciprocal(other), other), 0), Neg(Abs(input)), Abs(input))"
    )


@exports("isclose")
def isclose(b: Builder, call: Call) -> Val:
    if not _is_floating(call):
        raise UnsupportedError(f"dtype {call.operand_dtype()} is not supported")
    return call.evaluate(
        "Or(Equal(input, other), And(Less(Abs(Sub(input, other)), inf),"
        " LessOrEqual(Abs(Sub(input, other)), Add(Mul(Abs(other), rtol), atol))))"
    )


@exports("atan2")
def atan2(b: Builder, call: Call) -> Val:
    # For a negative `other`, the result is shifted by pi or -pi, with the sign of the input, which may be a signed
    # zero.
    half = "Where(Less(Where(Equal(input, 0), Reciprocal(input), input), 0), -3.141592653589793, 3.141592653589793)"
    below = f"Where(Less(Reciprocal(other), 0), {half}, input)"
    upright = f"Where(Equal(input, 0), {below}, Mul(Sign(input), 1.5707963267948966))"
    return call.evaluate(
        f"Where(Equal(other, 0), {upright}, Add(Atan(Div(input, other)), Where(Less(other, 0), {half}, 0)))"
    )


@exports("round.decimals")
def round_decimals(b: Builder, call: Call) -> Val:
    x = call.tensor("input")
    if not _is_floating(call):
        raise UnsupportedError(f"dtype {call.operand_dtype()} is not supported")
    decimals = call["decimals"]
    factor = b.scalar(10.0 ** abs(decimals), x.dtype)
    there, back = ("Mul", "Div") if decimals >= 0 else ("Div", "Mul")
    return b.op(back, b.op("Round", b.op(there, x, factor)), factor)


@exports("masked_fill")
def masked_fill(b: Builder, call: Call) -> Val:
    x, dtype = call.tensor("input"), call.result.dtype
    if call.is_tensor("value"):
        value = b.cast(call.tensor("value"), dtype)
    else:  # a number is converted to the tensor's dtype
        number = call["value"]
        value = b.scalar(number if dtype in FLOATING or dtype == "bool" else int(number), dtype)
    return b.op("Where", b.cast(call.tensor("mask"), "bool"), value, b.cast(x, dtype))


@exports("dropout")
def dropout(b: Builder, call: Call) -> Val:
    if call["train"] and call["p"] > 0:
        raise UnsupportedError("draws random numbers\nhint: call eval() on the model before it is exported")
    call["p"]
    return call.tensor("input")


_CONVERSIONS = (
    *(
        "to",
        "to.dtype",
        "to.other",
        "type_as",
        "_to_copy",
        "cpu",
        "float",
        "double",
        "half",
        "bfloat16",
        "long",
        "int",
    ),
    *("short", "char", "byte", "bool", "clone", "detach", "contiguous", "positive"),
)


@exports(*_CONVERSIONS)
def conversion(b: Builder, call: Call) -> Val:
    for name in ("dtype", "other"):
        if name in call.rule.arguments:
            call[name]
    return b.cast(call.tensor("input"), call.result.dtype)


@exports("copy_")
def copy(b: Builder, call: Call) -> Val:
    call["input"]
    other = call.tensor("other")
    if call.value("other").sizes != call.result.sizes:
        other = b.expand(other, call.result.sizes)
    return b.cast(other, call.result.dtype)
