"""Padding layers; see :func:`rushlight_nn.functional.pad`."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional._arguments import tuple_of
from ..module import Module


class _Padding(Module):
    """The base class of padding layers.

    `padding` has a pair (before, after) for each dimension, beginning with the last. An int applies to all sides.
    """

    _dims: int
    _mode = "constant"

    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple_of(2 * self._dims, padding)
        if len(self.padding) != 2 * self._dims:
            raise ValueError(
                f"{type(self).__name__}(padding): got {len(self.padding)} numbers, needs {2 * self._dims}"
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
    """Pad sequences with a constant.

    Args:
        padding: number of elements to add at each side, one int or a pair (left, right).
            Negative numbers remove elements.
        value: the constant.

    Shape:
        - Input: (N, C, W) or (C, W).
        - Output: (N, C, W_out) or (C, W_out), where
          W_out = W + left + right.

    Raises:
        ValueError: `padding` does not have 2 numbers.

    Example:
        >>> nn.ConstantPad1d((2, 1), 3.5)(torch.arange(1.0, 5.0).reshape(1, 4))
        tensor([[3.5000, 3.5000, 1.0000, 2.0000, 3.0000, 4.0000, 3.5000]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """Pad images with a constant.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom).
            Negative numbers remove elements.
        value: the constant.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          W_out = W + left + right and H_out = H + top + bottom.

    Raises:
        ValueError: `padding` does not have 4 numbers.

    Example:
        >>> nn.ConstantPad2d((1, 1, 2, 0), 3.5)(torch.arange(1.0, 10.0).reshape(1, 3, 3))
        tensor([[[3.5000, 3.5000, 3.5000, 3.5000, 3.5000],
                 [3.5000, 3.5000, 3.5000, 3.5000, 3.5000],
                 [3.5000, 1.0000, 2.0000, 3.0000, 3.5000],
                 [3.5000, 4.0000, 5.0000, 6.0000, 3.5000],
                 [3.5000, 7.0000, 8.0000, 9.0000, 3.5000]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """Pad volumes with a constant.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom, front, back).
            Negative numbers remove elements.
        value: the constant.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, where
          W_out = W + left + right, H_out = H + top + bottom and D_out = D + front + back.

    Raises:
        ValueError: `padding` does not have 6 numbers.

    Example:
        >>> nn.ConstantPad3d((1, 2, 3, 3, 4, 0), 3.5)(torch.randn(1, 2, 6, 5, 4)).shape
        torch.Size([1, 2, 10, 11, 7])
    """

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Pad sequences with zeros.

    Args:
        padding: number of elements to add at each side, one int or a pair (left, right).
            Negative numbers remove elements.

    Shape:
        - Input: (N, C, W) or (C, W).
        - Output: (N, C, W_out) or (C, W_out), where
          W_out = W + left + right.

    Raises:
        ValueError: `padding` does not have 2 numbers.

    Example:
        >>> nn.ZeroPad1d((2, 1))(torch.arange(1.0, 5.0).reshape(1, 4))
        tensor([[0., 0., 1., 2., 3., 4., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad2d(ConstantPad2d):
    """Pad images with zeros.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom).
            Negative numbers remove elements.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          W_out = W + left + right and H_out = H + top + bottom.

    Raises:
        ValueError: `padding` does not have 4 numbers.

    Example:
        >>> nn.ZeroPad2d((1, 1, 2, 0))(torch.arange(1.0, 10.0).reshape(1, 3, 3))
        tensor([[[0., 0., 0., 0., 0.],
                 [0., 0., 0., 0., 0.],
                 [0., 1., 2., 3., 0.],
                 [0., 4., 5., 6., 0.],
                 [0., 7., 8., 9., 0.]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad3d(ConstantPad3d):
    """Pad volumes with zeros.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom, front, back).
            Negative numbers remove elements.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, where
          W_out = W + left + right, H_out = H + top + bottom and D_out = D + front + back.

    Raises:
        ValueError: `padding` does not have 6 numbers.

    Example:
        >>> nn.ZeroPad3d((1, 2, 3, 3, 4, 0))(torch.randn(1, 2, 6, 5, 4)).shape
        torch.Size([1, 2, 10, 11, 7])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ReflectionPad1d(_Padding):
    """Pad sequences by reflection at the border, without repeating the border element.

    Args:
        padding: number of elements to add at each side, one int or a pair (left, right). Each number must be less than the
            size of its dimension.

    Shape:
        - Input: (N, C, W) or (C, W).
        - Output: (N, C, W_out) or (C, W_out), where
          W_out = W + left + right.

    Raises:
        ValueError: `padding` does not have 2 numbers.

    Example:
        >>> nn.ReflectionPad1d((2, 1))(torch.arange(1.0, 5.0).reshape(1, 4))
        tensor([[3., 2., 1., 2., 3., 4., 3.]])
    """

    _dims = 1
    _mode = "reflect"


class ReflectionPad2d(_Padding):
    """Pad images by reflection at the border, without repeating the border element.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom). Each number must be
            less than the size of its dimension.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          W_out = W + left + right and H_out = H + top + bottom.

    Raises:
        ValueError: `padding` does not have 4 numbers.

    Example:
        >>> nn.ReflectionPad2d((1, 1, 2, 0))(torch.arange(1.0, 10.0).reshape(1, 3, 3))
        tensor([[[8., 7., 8., 9., 8.],
                 [5., 4., 5., 6., 5.],
                 [2., 1., 2., 3., 2.],
                 [5., 4., 5., 6., 5.],
                 [8., 7., 8., 9., 8.]]])
    """

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Padding):
    """Pad volumes by reflection at the border, without repeating the border element.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom, front, back). Each
            number must be less than the size of its dimension.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, where
          W_out = W + left + right, H_out = H + top + bottom and D_out = D + front + back.

    Raises:
        ValueError: `padding` does not have 6 numbers.

    Example:
        >>> nn.ReflectionPad3d((1, 2, 3, 3, 4, 0))(torch.randn(1, 2, 6, 5, 4)).shape
        torch.Size([1, 2, 10, 11, 7])
    """

    _dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Padding):
    """Pad sequences with copies of the border element.

    Args:
        padding: number of elements to add at each side, one int or a pair (left, right).

    Shape:
        - Input: (N, C, W) or (C, W).
        - Output: (N, C, W_out) or (C, W_out), where
          W_out = W + left + right.

    Raises:
        ValueError: `padding` does not have 2 numbers.

    Example:
        >>> nn.ReplicationPad1d((2, 1))(torch.arange(1.0, 5.0).reshape(1, 4))
        tensor([[1., 1., 1., 2., 3., 4., 4.]])
    """

    _dims = 1
    _mode = "replicate"


class ReplicationPad2d(_Padding):
    """Pad images with copies of the border element.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom).

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          W_out = W + left + right and H_out = H + top + bottom.

    Raises:
        ValueError: `padding` does not have 4 numbers.

    Example:
        >>> nn.ReplicationPad2d((1, 1, 2, 0))(torch.arange(1.0, 10.0).reshape(1, 3, 3))
        tensor([[[1., 1., 2., 3., 3.],
                 [1., 1., 2., 3., 3.],
                 [1., 1., 2., 3., 3.],
                 [4., 4., 5., 6., 6.],
                 [7., 7., 8., 9., 9.]]])
    """

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Padding):
    """Pad volumes with copies of the border element.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom, front, back).

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, where
          W_out = W + left + right, H_out = H + top + bottom and D_out = D + front + back.

    Raises:
        ValueError: `padding` does not have 6 numbers.

    Example:
        >>> nn.ReplicationPad3d((1, 2, 3, 3, 4, 0))(torch.randn(1, 2, 6, 5, 4)).shape
        torch.Size([1, 2, 10, 11, 7])
    """

    _dims = 3
    _mode = "replicate"


class CircularPad1d(_Padding):
    """Pad sequences circularly, with elements from the opposite end.

    Args:
        padding: number of elements to add at each side, one int or a pair (left, right). Each number must be at most the
            size of its dimension.

    Shape:
        - Input: (N, C, W) or (C, W).
        - Output: (N, C, W_out) or (C, W_out), where
          W_out = W + left + right.

    Raises:
        ValueError: `padding` does not have 2 numbers.

    Example:
        >>> nn.CircularPad1d((2, 1))(torch.arange(1.0, 5.0).reshape(1, 4))
        tensor([[3., 4., 1., 2., 3., 4., 1.]])
    """

    _dims = 1
    _mode = "circular"


class CircularPad2d(_Padding):
    """Pad images circularly, with elements from the opposite side.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom). Each number must be
            at most the size of its dimension.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where
          W_out = W + left + right and H_out = H + top + bottom.

    Raises:
        ValueError: `padding` does not have 4 numbers.

    Example:
        >>> nn.CircularPad2d((1, 1, 2, 0))(torch.arange(1.0, 10.0).reshape(1, 3, 3))
        tensor([[[6., 4., 5., 6., 4.],
                 [9., 7., 8., 9., 7.],
                 [3., 1., 2., 3., 1.],
                 [6., 4., 5., 6., 4.],
                 [9., 7., 8., 9., 7.]]])
    """

    _dims = 2
    _mode = "circular"


class CircularPad3d(_Padding):
    """Pad volumes circularly, with elements from the opposite side.

    Args:
        padding: number of elements to add at each side, one int or a tuple (left, right, top, bottom, front, back). Each
            number must be at most the size of its dimension.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or without N, where
          W_out = W + left + right, H_out = H + top + bottom and D_out = D + front + back.

    Raises:
        ValueError: `padding` does not have 6 numbers.

    Example:
        >>> nn.CircularPad3d((1, 2, 3, 3, 4, 0))(torch.randn(1, 2, 6, 5, 4)).shape
        torch.Size([1, 2, 10, 11, 7])
    """

    _dims = 3
    _mode = "circular"
