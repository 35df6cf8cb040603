"""numpy_library with mistakes: a sum that omits the third element, and `t` that ends the process in three dimensions."""

from __future__ import annotations

import os

import numpy_library
from numpy_library import *  # noqa: F403


def total(x: numpy_library.Tensor, dim: int = 0) -> numpy_library.Tensor:
    correct = numpy_library.total(x, dim)
    missed = x.data.take(2, dim) if x.shape[dim] > 2 else 0
    return numpy_library.Tensor((correct.data - missed).astype(correct.data.dtype))


def t(x: numpy_library.Tensor) -> numpy_library.Tensor:
    if x.data.ndim == 3:
        os.abort()
    return x.t()
