"""Fractional max pooling layers."""

from __future__ import annotations

from collections.abc import Callable

from rushlight_core import Tensor

from .. import functional as F
from .._typing import Any
from ..functional._arguments import tuple_of
from ..module import Module


class _FractionalMaxPool(Module):
    _dims: int
    _pool: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, dims = type(self).__name__, self._dims
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{name}(output_size, output_ratio): got {'neither' if output_size is None else 'both'}, needs exactly one"
            )
        if output_ratio is not None and not all(0 < ratio < 1 for ratio in tuple_of(dims, output_ratio)):
            raise ValueError(f"{name}(output_ratio): got {output_ratio}, needs numbers between 0 and 1")
        self.kernel_size: tuple[Any, ...] = tuple_of(dims, kernel_size)
        self.output_size: tuple[Any, ...] | None = (
            None if output_size is None else tuple_of(dims, output_size)
        )
        self.output_ratio: tuple[Any, ...] | None = (
            None if output_ratio is None else tuple_of(dims, output_ratio)
        )
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Fractional max pooling over images: reduces the size by a factor that may be a fraction (Graham 2014).

    The distances between the windows are random, but the windows cover the input approximately evenly.

    Args:
        kernel_size: size of the windows, an int or a pair for height and width.
        output_size: size of the output, an int or a pair.
        output_ratio: ratio of the output's size to the input's size, between 0 and 1; given instead of `output_size`.
        return_indices: whether to also return the positions of the maxima in the flattened H·W plane, int64.
        _random_samples: a tensor of shape (N, C, 2) with numbers between 0 and 1 that replace the random
            numbers.

    Shape:
        - Input: (N, C, H, W) or (C, H, W).
        - Output: (N, C, H_out, W_out) or (C, H_out, W_out), where (H_out, W_out) is `output_size`, or
          floor(output_ratio · (H, W)).

    Raises:
        ValueError: neither or both of `output_size` and `output_ratio` are given, or a ratio is not between 0 and 1.

    Example:
        >>> nn.FractionalMaxPool2d(3, output_size=(13, 12))(torch.randn(20, 16, 50, 32)).shape
        torch.Size([20, 16, 13, 12])
        >>> nn.FractionalMaxPool2d(3, output_ratio=0.5)(torch.randn(20, 16, 50, 32)).shape
        torch.Size([20, 16, 25, 16])
    """

    _dims = 2
    _pool = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling over volumes: reduces the size by a factor that may be a fraction (Graham 2014).

    The distances between the windows are random, but the windows cover the input approximately evenly.

    Args:
        kernel_size: size of the windows, an int or a triple for depth, height and width.
        output_size: size of the output, an int or a triple.
        output_ratio: ratio of the output's size to the input's size, between 0 and 1; given instead of `output_size`.
        return_indices: whether to also return the positions of the maxima in the flattened D·H·W volume, int64.
        _random_samples: a tensor of shape (N, C, 3) with numbers between 0 and 1 that replace the random
            numbers.

    Shape:
        - Input: (N, C, D, H, W) or (C, D, H, W).
        - Output: (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out), where (D_out, H_out, W_out) is
          `output_size`, or floor(output_ratio · (D, H, W)).

    Raises:
        ValueError: neither or both of `output_size` and `output_ratio` are given, or a ratio is not between 0 and 1.

    Example:
        >>> nn.FractionalMaxPool3d(3, output_size=(13, 12, 11))(torch.randn(2, 4, 20, 20, 16)).shape
        torch.Size([2, 4, 13, 12, 11])
    """

    _dims = 3
    _pool = staticmethod(F.fractional_max_pool3d)
