"""Learning-rate schedules.

A scheduler sets the learning rate of every parameter group of an optimizer. Its `step()` is called after the
optimizer's step, usually once per epoch. Most schedules compute the next rate from the current rate. If an
optimizer has several such schedules, their factors are therefore multiplied.
"""

from __future__ import annotations

from .base import LRScheduler
from .combined import ChainedScheduler, SequentialLR
from .cyclic import CyclicLR
from .factors import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .one_cycle import OneCycleLR
from .plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler  # the former name of the base class, which programs still import

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
