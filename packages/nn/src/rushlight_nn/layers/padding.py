"""Layers that extend their input at its edges; see :func:`rushlight_nn.functional.pad`."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional._arguments import tuple_of
from ..module import Module


class _Padding(Module):
    """The amounts before and after, the last dimension first; one int stands for all."""

    _dims: int
    _mode = "constant"

    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple_of(2 * self._dims, padding)
        if len(self.padding) != 2 * self._dims:
            raise ValueError(
                f"{type(self).__name__}(padding): got {len(self.padding)} amounts, needs {2 * self._dims}"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Padding):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """(N, C, L) or (C, L) with a `value` around."""

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """(N, C, H, W) or (C, H, W) with a `value` around."""

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """(N, C, D, H, W) or (C, D, H, W) with a `value` around."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """(N, C, L) or (C, L) with zeros around."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad2d(ConstantPad2d):
    """(N, C, H, W) or (C, H, W) with zeros around."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad3d(ConstantPad3d):
    """(N, C, D, H, W) or (C, D, H, W) with zeros around."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ReflectionPad1d(_Padding):
    """(N, C, L) or (C, L), mirrored at its first and last elements."""

    _dims = 1
    _mode = "reflect"


class ReflectionPad2d(_Padding):
    """(N, C, H, W) or (C, H, W), mirrored at its first and last elements."""

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Padding):
    """(N, C, D, H, W) or (C, D, H, W), mirrored at its first and last elements."""

    _dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Padding):
    """(N, C, L) or (C, L), its first and last elements repeated."""

    _dims = 1
    _mode = "replicate"


class ReplicationPad2d(_Padding):
    """(N, C, H, W) or (C, H, W), its first and last elements repeated."""

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Padding):
    """(N, C, D, H, W) or (C, D, H, W), its first and last elements repeated."""

    _dims = 3
    _mode = "replicate"


class CircularPad1d(_Padding):
    """(N, C, L) or (C, L), continued with its other end."""

    _dims = 1
    _mode = "circular"


class CircularPad2d(_Padding):
    """(N, C, H, W) or (C, H, W), continued with its other end."""

    _dims = 2
    _mode = "circular"


class CircularPad3d(_Padding):
    """(N, C, D, H, W) or (C, D, H, W), continued with its other end."""

    _dims = 3
    _mode = "circular"
