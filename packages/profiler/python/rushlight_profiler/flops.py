"""Count the floating-point operations of an operator from the shapes of its arguments.

A multiplication and an addition count as two operations. Operators that are not listed below count as 0. If an operator
calls listed operators, and these calls are recorded, only the called operators are counted. For example, `matmul` calls `mm`
or `bmm`. `linear` itself is counted unless the recording contains a listed operator that it called.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from rushlight_core.seams.profiler import Argument, Event

Shape = tuple[int, ...]

ITEM_SIZE = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2, "int32": 4,
    "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8, "complex64": 8, "complex128": 16,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
}  # fmt: skip


_BY_SHAPES: dict[str, tuple[int, Callable[[Shape, Shape], int]]] = {
    # The index of the first of the two factors among the arguments, and the formula for the shapes of the factors.
    "mm": (0, lambda a, b: 2 * prod(a) * b[-1]),
    "bmm": (0, lambda a, b: 2 * prod(a) * b[-1]),
    "addmm": (1, lambda a, b: 2 * prod(a) * b[-1]),
    "baddbmm": (1, lambda a, b: 2 * prod(a) * b[-1]),
    "linear": (0, lambda a, b: 2 * prod(a) * b[0]),
    "mv": (0, lambda a, b: 2 * prod(a)),
    "dot": (0, lambda a, b: 2 * prod(a)),
}
_CONVOLUTIONS = {"conv1d", "conv2d", "conv3d", "convolution"}
CONVOLUTIONS = {*_CONVOLUTIONS, "convolution_backward"}
# For attention: the index of the query among the arguments, and the numbers of products of size (queries, keys, depth
# of queries) and of size (queries, keys, depth of values).
_ATTENTION = {"_attention": (0, 1, 1), "_attention_backward": (1, 3, 2)}
_ONE_EACH = {"add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"}


def flops_of(event: Event, transposed: bool = False) -> int:
    """Return the number of operations of one call, or 0 if it is not known.

    Args:
        event: the call.
        transposed: whether a convolution is transposed, which the recorded arguments do not show.
    """
    arguments = event.arguments or ()
    if event.name in _ATTENTION:
        first, in_depth, in_values = _ATTENTION[event.name]
        given = arguments[first : first + 3]
        query, key, value = [a.shape if isinstance(a, Argument) else () for a in given]
        if len(query) < 2 or len(key) < 2:
            return 0
        return 2 * prod(query[:-1]) * key[-2] * (in_depth * query[-1] + in_values * value[-1])
    if event.name == "convolution_backward":
        grad, input, kernel = [a.shape if isinstance(a, Argument) else () for a in arguments[:3]]
        one = 2 * prod(input if transposed else grad) * prod(kernel[1:])
        # The gradient of the weight, and, if it is needed, the gradient of the input, which is the first result.
        return one * (2 if event.nbytes else 1) if kernel else 0
    if event.name in _BY_SHAPES:
        first, formula = _BY_SHAPES[event.name]
        a, b = [*arguments[first : first + 2], None, None][:2]
        return formula(a.shape, b.shape) if isinstance(a, Argument) and isinstance(b, Argument) else 0
    tensor = next((argument for argument in arguments if isinstance(argument, Argument)), None)
    if tensor is None:
        return 0
    results = event.nbytes // ITEM_SIZE[tensor.dtype]
    if event.name in _CONVOLUTIONS:
        weight = arguments[1]
        elements = prod(tensor.shape) if transposed else results
        return 2 * elements * prod(weight.shape[1:]) if isinstance(weight, Argument) else 0
    return results if event.name in _ONE_EACH else 0
