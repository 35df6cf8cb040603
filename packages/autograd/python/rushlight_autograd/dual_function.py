"""Run the `jvp` methods of custom Functions in forward mode."""

from __future__ import annotations

from typing import Any

from rushlight_autograd._C import _attach_tangent, _function_jvp, _make_dual, _unpack_dual
from rushlight_autograd.function import Function
from rushlight_core import Tensor


def apply(function: type[Function], args: tuple[Any, ...], level: int) -> Any:
    """Call a custom Function with dual tensors, and return its outputs as dual tensors.

    `level` is the innermost forward-mode level at which an argument has a tangent. The tangents of the
    outputs at this level come from `function.jvp`."""
    tangents = tuple(_unpack_dual(x, level)[1] if isinstance(x, Tensor) else None for x in args)
    versions = [x._version if isinstance(x, Tensor) else 0 for x in args]
    output, found = _function_jvp(function, args, tangents, level)
    if any(isinstance(x, Tensor) and x._version != v for x, v in zip(args, versions, strict=True)):
        raise NotImplementedError(
            f"{function.__name__}: forward changes an argument in place, which is not supported together with jvp\n"
            "hint: return a new tensor"
        )
    outputs = output if isinstance(output, tuple) else (output,)
    found = found if isinstance(found, tuple) else (found,)
    name = function.__name__
    if len(found) != len(outputs):
        raise RuntimeError(
            f"{name}: jvp returned {len(found)} tangent(s), but forward returned {len(outputs)} output(s)\n"
            "hint: return one tangent, or None, per output"
        )
    duals: list[Any] = []
    for i, (y, t) in enumerate(zip(outputs, found, strict=True)):
        # A recorded output gets the tangent itself, because its node may have saved it. But an argument has its own
        # tangent, and so has an output that was returned before.
        own = isinstance(y, Tensor) and y.requires_grad and not any(y is x for x in (*args, *outputs[:i]))
        duals.append(_dual(name, i, y, t, level, own))
    return tuple(duals) if isinstance(output, tuple) else duals[0]


def _dual(name: str, i: int, output: Any, tangent: Any, level: int, own: bool) -> Any:
    if tangent is None:
        return output
    if not isinstance(tangent, Tensor) or not isinstance(output, Tensor):
        raise TypeError(
            f"{name}: jvp returned {type(tangent).__name__} as tangent of output {i}, which is {type(output).__name__}\n"
            "hint: return a Tensor for a Tensor, and None for anything else"
        )
    if not (output.is_floating_point() or output.is_complex()):
        raise RuntimeError(
            f"{name}: jvp returned a tangent for output {i}, whose dtype is {output.dtype}\n"
            "hint: return None for integers and bools, which have no tangents"
        )
    if tangent.shape != output.shape or tangent.dtype != output.dtype:
        raise RuntimeError(
            f"{name}: jvp returned a tangent of shape {tuple(tangent.shape)} and {tangent.dtype} for output {i}, which has "
            f"{tuple(output.shape)} and {output.dtype}"
        )
    if not own:
        return _make_dual(output, tangent, level)
    _attach_tangent(output, tangent, level)
    return output
