"""Forward mode: dual tensors carry a tangent through every operator.

with dual_level():
    x = make_dual(primal, tangent)
    y, dy = unpack_dual(f(x))
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rushlight_autograd._C import _enter_forward_mode, _leave_forward_mode, _make_dual, _unpack_dual
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
    """The result of :func:`unpack_dual`: `primal`, and `tangent`, which is None if the tensor has no tangent.

    Example:
        >>> import rushlight.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     fwAD.unpack_dual(torch.ones(1)).tangent is None
        True
    """

    primal: Tensor
    tangent: Tensor | None


class _Levels(threading.local):
    def __init__(self) -> None:
        self.open: list[int] = []  # the engine's numbers of the open levels


_levels = _Levels()


def enter_dual_level() -> int:
    """Open a level of forward mode inside the innermost open level, and return its number, counted from 0.

    Prefer :func:`dual_level`, which also closes the level.

    Example:
        >>> level = enter_dual_level()
        >>> exit_dual_level(level=level)
    """
    _levels.open.append(_enter_forward_mode())
    return len(_levels.open) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the innermost level of forward mode: every tensor loses its tangent of this level.

    Args:
        level: the number of the level, which must be the innermost level; by default, the innermost level.

    Raises:
        RuntimeError: `level` is not the innermost level, or no level is open.

    Example:
        >>> level = enter_dual_level()
        >>> exit_dual_level(level=level)
    """
    innermost = len(_levels.open) - 1
    if innermost < 0 or level not in (None, innermost):
        asked = max(innermost, 0) if level is None else level
        raise RuntimeError(
            f"exit_dual_level(level): level {asked} is not the innermost of the {innermost + 1} open levels"
        )
    _leave_forward_mode(_levels.open.pop())


@contextmanager
def dual_level() -> Iterator[int]:
    """Return a context manager within which forward mode is on.

    Levels nest: a tensor may have a tangent for each level, and outer levels differentiate the derivatives of
    inner levels. At the end of the block, every tensor loses its tangent of this level.

    Example:
        >>> import rushlight.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     fwAD.unpack_dual(x * x).tangent
        tensor(6.)
    """
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level(level=level)


def _number(name: str, level: int | None) -> int:
    if not _levels.open:
        raise RuntimeError(f"{name}(): must be called inside `with dual_level():`")
    at = len(_levels.open) - 1 if level is None else level
    if not 0 <= at < len(_levels.open):
        raise RuntimeError(f"{name}(level): levels 0 to {len(_levels.open) - 1} are open, got {level}")
    return _levels.open[at]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a dual tensor: a view of `tensor` with the tangent `tangent`, for forward mode.

    Args:
        tensor: the tensor, floating point or complex.
        tangent: the tangent.
        level: the level to which the tangent belongs; the innermost level by default.

    Shape:
        - Tensor, tangent and output: (*), the same shape.

    Raises:
        ValueError: the tensor is neither floating-point nor complex.
        RuntimeError: shapes or dtypes differ, or no level is open.

    Example:
        >>> import rushlight.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        ...     fwAD.unpack_dual(x.exp()).tangent
        tensor([2.7183, 0.0000])
    """
    number = _number("make_dual", level)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"make_dual(tensor): must be floating point, got {tensor.dtype}")
    if tensor.shape != tangent.shape or tensor.dtype != tangent.dtype:
        raise RuntimeError(
            f"make_dual(tensor, tangent): shape and dtype must agree, got {tuple(tensor.shape)} {tensor.dtype} and "
            f"{tuple(tangent.shape)} {tangent.dtype}"
        )
    return _make_dual(tensor, tangent, number)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the primal tensor and the tangent of a dual tensor.

    Args:
        tensor: the tensor.
        level: the level of the tangent; the innermost level by default.

    Shape:
        - Input and outputs: (*), the same shape.

    Example:
        >>> import rushlight.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     primal, tangent = fwAD.unpack_dual(fwAD.make_dual(torch.zeros(2), torch.ones(2)))
        >>> tangent
        tensor([1., 1.])
    """
    if not _levels.open:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_unpack_dual(tensor, _number("unpack_dual", level)))
