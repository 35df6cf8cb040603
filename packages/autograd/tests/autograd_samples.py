"""Small tensors for the tests of this folder."""

from __future__ import annotations

import math
import random

import rushlight_core as core
from rushlight_core import Tensor


def leaf(*shape: int, low: float = 0.5, high: float = 2.0, dtype=core.float64) -> Tensor:
    """Return a random tensor that requires grad; by default it is positive, away from kinks and poles."""
    values = [random.uniform(low, high) for _ in range(math.prod(shape))]
    return core.tensor(values, dtype=dtype).view(shape).requires_grad_()


def ones(t: Tensor) -> Tensor:
    return core.ones_like(t.detach())
