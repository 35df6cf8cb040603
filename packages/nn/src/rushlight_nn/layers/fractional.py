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
                f"{name}(output_size, output_ratio): got {'neither' if output_size is None else 'both'}, needs one"
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
    """The largest value of windows at random places; see :func:`rushlight_nn.functional.fractional_max_pool2d`.

    Raises:
        ValueError: not exactly one of `output_size` and `output_ratio` is given, or a ratio is not between 0 and 1.
    """

    _dims = 2
    _pool = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest value of windows at random places; see :func:`rushlight_nn.functional.fractional_max_pool3d`.

    Raises:
        ValueError: not exactly one of `output_size` and `output_ratio` is given, or a ratio is not between 0 and 1.
    """

    _dims = 3
    _pool = staticmethod(F.fractional_max_pool3d)
