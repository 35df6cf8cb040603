"""Forward mode: dual tensors carry a tangent through every operator.

with dual_level():
    x = make_dual(primal, tangent)
    y, dy = unpack_dual(f(x))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rushlight_autograd._C import _enter_forward_mode, _leave_forward_mode, _set_tangent, _tangent
from rushlight_core import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """What unpack_dual returns; `tangent` is None for a tensor without one."""

    primal: Tensor
    tangent: Tensor | None


_level = 0


def enter_dual_level() -> int:
    """Turns forward mode on, until `exit_dual_level`; `dual_level` does both."""
    global _level
    if _level:
        raise RuntimeError("dual_level(): nested forward mode is not supported yet")
    _level += 1
    _enter_forward_mode()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Turns forward mode off: every tensor loses its tangent. Raises RuntimeError where it is not on."""
    global _level
    if not _level or level not in (None, 0):
        raise RuntimeError(f"exit_dual_level(level): level {0 if level is None else level} was not entered")
    _level -= 1
    _leave_forward_mode()


@contextmanager
def dual_level() -> Iterator[int]:
    """Forward mode is on inside; levels do not nest. At the end every tensor loses its tangent."""
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level(level=level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`, of the same shape and dtype."""
    if not _level:
        raise RuntimeError("make_dual(): only inside of `with dual_level():`")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"make_dual(tensor): must be floating point, got {tensor.dtype}")
    if tensor.shape != tangent.shape or tensor.dtype != tangent.dtype:
        raise RuntimeError(
            f"make_dual(tensor, tangent): shape and dtype must agree, got {tuple(tensor.shape)} {tensor.dtype} and "
            f"{tuple(tangent.shape)} {tangent.dtype}"
        )
    dual = tensor.view_as(tensor)
    _set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent."""
    tangent = _tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    _set_tangent(tensor, None)
    try:
        primal = tensor.view_as(tensor)
    finally:
        _set_tangent(tensor, tangent)
    return UnpackedDualTensor(primal, tangent)
