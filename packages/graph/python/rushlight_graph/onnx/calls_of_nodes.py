"""Functions that run the nodes of an ONNX model, one function for each ONNX operator that `export` writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core._C import _call_boxed
from rushlight_graph.onnx.builder import ELEMENT_TYPES

Attributes = dict[str, Any]
Function = Callable[[Attributes, list[Any], str], Any]
_DTYPES = {number: getattr(core, name) for name, number in ELEMENT_TYPES.items()}

#: The function of each operator. Its arguments are a node's attributes, its inputs, and a text that names the node
#: in errors.
CALLS: dict[str, Function] = {}


class NodeError(ValueError):
    """Raised if no function of `CALLS` can run a node of an ONNX model. The message names the node."""


class Known:
    """A number or an array of integers whose values are known while a model is loaded, such as a shape."""

    def __init__(self, array: Any, constant: Tensor | None = None) -> None:
        self.array: np.ndarray[Any, Any] = np.asarray(array)
        self.constant = constant

    def ints(self) -> list[int]:
        """Return the integers."""
        return [int(item) for item in self.array.reshape(-1)]

    def tensor(self) -> Tensor:
        """Return the value as a tensor.

        If the value is not the tensor of a constant, the result is computed with a call of `full` for each
        integer, so that an integer can be a dynamic size.
        """
        if self.constant is None:
            dtype = core.bool if self.array.dtype == bool else core.int64
            parts = [core.full([], item, dtype=dtype) for item in self.ints()]
            if self.array.ndim == 0:
                return parts[0]
            flat = core.stack(parts) if parts else core.zeros([0], dtype=dtype)
            return flat.reshape(self.array.shape)
        return self.constant


def tensor_of(item: Any) -> Any:
    """Return an input of a node as a tensor. Known integers are converted; see `Known.tensor`."""
    return item.tensor() if isinstance(item, Known) else item


def ints_of(item: Any, where: str) -> list[int]:
    """Return the integers of a node's input. Raise NodeError if they are not known during loading."""
    if not isinstance(item, Known):
        raise NodeError(f"{where}: a shape or a list of dimensions must not depend on the values of tensors")
    return item.ints()


def node(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that registers a function for the nodes of the ONNX operators `names`."""

    def register(function: Function) -> Function:
        CALLS.update(dict.fromkeys(names, function))
        return function

    return register


# --- element by element ---

_PLAIN: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(core, name.lower())
        for name in (
            "Relu",
            "Sigmoid",
            "Tanh",
            "Neg",
            "Abs",
            "Reciprocal",
            "Exp",
            "Log",
            "Sqrt",
            "Sin",
            "Cos",
            "Tan",
        )
    },
    **{
        name: getattr(core, name.lower())
        for name in (
            "Asin",
            "Acos",
            "Atan",
            "Sinh",
            "Cosh",
            "Asinh",
            "Acosh",
            "Atanh",
            "Erf",
            "Floor",
            "Ceil",
            "Round",
        )
    },
    "Sign": core.sign,
    "IsNaN": core.isnan,
    "Softplus": core.softplus,
    "HardSwish": core.hardswish,
    "Add": core.add,
    "Sub": core.sub,
    "Mul": core.mul,
    "Pow": core.pow,
    "Equal": core.eq,
    "Greater": core.gt,
    "Less": core.lt,
    "GreaterOrEqual": core.ge,
    "LessOrEqual": core.le,
    "And": core.logical_and,
    "Or": core.logical_or,
    "Xor": core.logical_xor,
    "Not": core.logical_not,
    "BitwiseAnd": core.bitwise_and,
    "BitwiseOr": core.bitwise_or,
    "BitwiseXor": core.bitwise_xor,
    "BitwiseNot": core.bitwise_not,
    "Where": core.where,
    "MatMul": core.matmul,
    "Det": core.det,
    "Identity": lambda x: x,
}
# Implementations of some operators for integers that are known.
_KNOWN: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Mod": np.mod,
    "Identity": lambda x: x,
    "Div": lambda a, b: np.trunc(np.divide(a, b)).astype(np.int64),
    "Max": np.maximum,
    "Min": np.minimum,
}


def _elementwise(name: str, function: Callable[..., Any]) -> Function:
    def call(attributes: Attributes, inputs: list[Any], where: str) -> Any:
        if name in _KNOWN and all(isinstance(item, Known) for item in inputs):
            return Known(_KNOWN[name](*(item.array for item in inputs)))
        return function(*map(tensor_of, inputs))

    return call


for _name, _function in _PLAIN.items():
    CALLS[_name] = _elementwise(_name, _function)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return core.div(a, b) if a.is_floating_point() else core.div(a, b, rounding_mode="trunc")


def _chained(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def call(*items: Tensor) -> Tensor:
        made = items[0]
        for item in items[1:]:
            made = function(made, item)
        return made

    return call


CALLS["Div"] = _elementwise("Div", _divide)
CALLS["Max"] = _elementwise("Max", _chained(core.maximum))
CALLS["Min"] = _elementwise("Min", _chained(core.minimum))


@node("Mod")
def mod(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    if all(isinstance(item, Known) for item in inputs):
        return Known(np.mod(inputs[0].array, inputs[1].array))
    return (core.fmod if attributes.get("fmod") else core.remainder)(*map(tensor_of, inputs))


@node("LeakyRelu")
def leaky_relu(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return core.leaky_relu(inputs[0], attributes.get("alpha", 0.01))


@node("Elu")
def elu(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return core.elu(inputs[0], attributes.get("alpha", 1.0))


@node("Gelu")
def gelu(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return core.gelu(inputs[0], approximate=attributes.get("approximate", "none"))


@node("HardSigmoid")
def hard_sigmoid(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return core.clamp(inputs[0] * attributes.get("alpha", 0.2) + attributes.get("beta", 0.5), 0, 1)


@node("Shrink")
def shrink(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    (x,), lambd, bias = inputs, attributes.get("lambd", 0.5), attributes.get("bias", 0.0)
    zero = core.zeros_like(x)
    return core.where(x < -lambd, x + bias, core.where(x > lambd, x - bias, zero))


@node("Clip")
def clip(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, low, high = [*map(tensor_of, inputs), None, None][:3]
    x = x if low is None else core.maximum(x, low)
    return x if high is None else core.minimum(x, high)


@node("Cast")
def cast(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    dtype = _DTYPES.get(attributes.get("to", 0))
    if dtype is None:
        raise NodeError(f"{where}: conversion to the ONNX type {attributes.get('to')} is not supported")
    if isinstance(inputs[0], Known) and dtype in (core.int64, core.bool):
        return Known(inputs[0].array.astype(np.bool_ if dtype == core.bool else np.int64))
    return tensor_of(inputs[0]).to(dtype)


# --- shapes ---


@node("Shape")
def shape(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    sizes = list(tensor_of(inputs[0]).shape)
    return Known(np.array(sizes[attributes.get("start", 0) : attributes.get("end", len(sizes))], np.int64))


@node("Constant")
def constant(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    if "value" in attributes:
        value: Known = attributes["value"]
        return value if value.array.dtype == np.int64 and value.array.ndim < 2 else value.tensor()
    for name in ("value_int", "value_ints"):
        if name in attributes:
            return Known(np.array(attributes[name], np.int64))
    for name in ("value_float", "value_floats"):
        if name in attributes:
            return core.tensor(attributes[name])
    raise NodeError(f"{where}: a constant must be a tensor, a float or an int, or a list of floats or ints")


@node("ConstantOfShape")
def constant_of_shape(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    value = attributes.get("value")
    sizes = ints_of(inputs[0], where)
    if value is None:
        return core.zeros(sizes)
    return core.full(sizes, value.array.reshape(-1)[0].item(), dtype=value.tensor().dtype)


@node("Range")
def range_(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    numbers = []
    for item in inputs:
        if isinstance(item, Known):
            numbers += item.ints()
        elif isinstance(item, Tensor) and not item.is_floating_point():
            raise NodeError(f"{where}: a limit or step of a range must not depend on the values of tensors")
        else:
            raise NodeError(f"{where}: a range of floats is not supported")
    return core.arange(*numbers)


@node("Reshape")
def reshape(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    sizes = ints_of(inputs[1], where)
    if isinstance(inputs[0], Known):
        return Known(inputs[0].array.reshape(sizes))
    if not attributes.get("allowzero"):
        sizes = [inputs[0].shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return inputs[0].reshape(sizes)


@node("Transpose")
def transpose(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x = tensor_of(inputs[0])
    return x.permute(attributes.get("perm", list(range(x.ndim))[::-1]))


@node("Unsqueeze")
def unsqueeze(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    dims = ints_of(inputs[1], where)
    if isinstance(inputs[0], Known):
        return Known(np.expand_dims(inputs[0].array, tuple(dims)))
    x = inputs[0]
    rank = x.ndim + len(dims)
    for dim in sorted(dim % rank for dim in dims):
        x = x.unsqueeze(dim)
    return x


@node("Squeeze")
def squeeze(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    dims = ints_of(inputs[1], where) if len(inputs) > 1 and inputs[1] is not None else None
    if isinstance(inputs[0], Known):
        return Known(np.squeeze(inputs[0].array, None if dims is None else tuple(dims)))
    return inputs[0].squeeze() if dims is None else inputs[0].squeeze(dims)


@node("Expand")
def expand(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, sizes = tensor_of(inputs[0]), ints_of(inputs[1], where)
    wide = [1] * (x.ndim - len(sizes)) + sizes
    own = [1] * (len(wide) - x.ndim) + list(x.shape)
    return x.expand([mine if size == 1 else size for mine, size in zip(own, wide, strict=True)])


@node("Tile")
def tile(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return tensor_of(inputs[0]).repeat(ints_of(inputs[1], where))


@node("Concat")
def concat(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    if all(isinstance(item, Known) for item in inputs):
        return Known(np.concatenate([item.array for item in inputs], attributes["axis"]))
    return core.cat([tensor_of(item) for item in inputs], attributes["axis"])


@node("Slice")
def slice_(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    starts, ends = ints_of(inputs[1], where), ints_of(inputs[2], where)
    axes = (
        ints_of(inputs[3], where) if len(inputs) > 3 and inputs[3] is not None else list(range(len(starts)))
    )
    steps = ints_of(inputs[4], where) if len(inputs) > 4 else [1] * len(starts)
    x = inputs[0]
    if isinstance(x, Known):
        parts = [slice(None)] * x.array.ndim
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            parts[axis] = slice(start, end, step)
        return Known(x.array[tuple(parts)])
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step > 0:
            x = _call_boxed("slice", x, axis, start, None if end >= 2**62 else end, step)
        elif (start, step) == (-1, -1) and end <= -(2**62):
            x = x.flip(axis)
        else:
            raise NodeError(f"{where}: a negative step is not supported")
    return x


@node("Gather")
def gather(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    axis = attributes.get("axis", 0)
    x, index = inputs
    if isinstance(x, Known) and isinstance(index, Known):
        return Known(np.take(x.array, index.array, axis))
    x = tensor_of(x)
    axis %= x.ndim
    if isinstance(index, Known) and index.array.ndim == 0:
        return x.select(axis, index.ints()[0])
    return _call_boxed("_index", x, [*[None] * axis, tensor_of(index).to(core.int64)])


@node("Pad")
def pad(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, pads = inputs[0], ints_of(inputs[1], where)
    rank = x.ndim
    ours = [number for d in reversed(range(rank)) for number in (pads[d], pads[rank + d])]
    while len(ours) > 2 and ours[-2:] == [0, 0]:
        ours = ours[:-2]
    mode = attributes.get("mode", "constant")
    if mode != "constant":
        return core._pad(x, ours, {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}[mode])
    if len(inputs) < 3 or inputs[2] is None:
        return core.constant_pad_nd(x, ours)
    value = tensor_of(inputs[2])
    inside = core.constant_pad_nd(core.ones_like(x, dtype=core.bool), ours, False)
    return core.where(inside, core.constant_pad_nd(x, ours), value)


@node("Trilu")
def trilu(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    diagonal = ints_of(inputs[1], where)[0] if len(inputs) > 1 else 0
    return (core.triu if attributes.get("upper", 1) else core.tril)(tensor_of(inputs[0]), diagonal)


# --- reductions ---

_REDUCTIONS = {
    "ReduceSum": lambda x, dims, keep: x.sum(dims, keepdim=keep, dtype=x.dtype),
    "ReduceMean": lambda x, dims, keep: x.mean(dims, keepdim=keep),
    "ReduceMax": lambda x, dims, keep: x.amax(dims, keepdim=keep),
    "ReduceMin": lambda x, dims, keep: x.amin(dims, keepdim=keep),
    "ReduceLogSumExp": lambda x, dims, keep: x.logsumexp(dims, keepdim=keep),
}


def _reduction(name: str) -> Function:
    def call(attributes: Attributes, inputs: list[Any], where: str) -> Any:
        x, keep = inputs[0], bool(attributes.get("keepdims", 1))
        dims = attributes.get("axes")
        if len(inputs) > 1 and inputs[1] is not None:
            dims = ints_of(inputs[1], where)
        if isinstance(x, Known):
            if name == "ReduceProd" and dims is None:
                return Known(np.prod(x.array, keepdims=keep))
            x = x.tensor()
        every = list(range(x.ndim)) if dims is None else [dim % x.ndim for dim in dims]
        if not every:
            return x
        if name != "ReduceProd":
            return _REDUCTIONS[name](x, every, keep)
        for dim in sorted(every, reverse=True):
            x = x.prod(dim, keepdim=keep, dtype=x.dtype)
        return x

    return call


for _name in (*_REDUCTIONS, "ReduceProd"):
    CALLS[_name] = _reduction(_name)


for _name, _function in (("ArgMax", core.argmax), ("ArgMin", core.argmin)):
    CALLS[_name] = lambda attributes, inputs, where, function=_function: function(  # type: ignore[misc]
        inputs[0], attributes.get("axis", 0), keepdim=bool(attributes.get("keepdims", 1))
    )


@node("TopK")
def topk(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    count, axis = ints_of(inputs[1], where)[0], attributes.get("axis", -1)
    return list(core.topk(tensor_of(inputs[0]), count, axis, bool(attributes.get("largest", 1)), True))


@node("Softmax")
def softmax(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return core.softmax(inputs[0], attributes.get("axis", -1))


@node("LogSoftmax")
def log_softmax(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    return core.log_softmax(inputs[0], attributes.get("axis", -1))


@node("CumSum")
def cumsum(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x = tensor_of(inputs[0])
    return core.cumsum(x, ints_of(inputs[1], where)[0], dtype=x.dtype)


# --- indices ---


@node("GatherElements")
def gather_elements(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, index = map(tensor_of, inputs)
    axis = attributes.get("axis", 0)
    return core.gather(x, axis, core.where(index < 0, index + x.shape[axis], index))


def _scatter(x: Tensor, axis: int, index: Tensor, source: Tensor, reduction: str) -> Tensor:
    index = core.where(index < 0, index + x.shape[axis], index)
    if reduction == "none":
        return core.scatter(x, axis, index, source)
    words = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return core.scatter_reduce(x, axis, index, source, words[reduction])


@node("ScatterElements")
def scatter_elements(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, index, source = map(tensor_of, inputs)
    return _scatter(x, attributes.get("axis", 0), index, source, attributes.get("reduction", "none"))


@node("GatherND")
def gather_nd(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, positions = map(tensor_of, inputs)
    return _call_boxed("_index", x, list(positions.unbind(-1)))


@node("ScatterND")
def scatter_nd(attributes: Attributes, inputs: list[Any], where: str) -> Any:
    x, positions, source = map(tensor_of, inputs)
    reduction = attributes.get("reduction", "none")
    if reduction not in ("none", "add"):
        raise NodeError(f"{where}: the reduction {reduction} is not supported")
    return core.index_put(x, list(positions.unbind(-1)), source, reduction == "add")
