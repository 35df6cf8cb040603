"""Quantisation of models: not there. Modules that mark where it would begin and end do nothing, as in a model that is not
quantised; no module is an observer; what quantises raises NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight_core import Tensor
from rushlight_nn import Module

__all__ = [
    "DeQuantStub",
    "FakeQuantizeBase",
    "ObserverBase",
    "QuantStub",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
]

_ORDERS = frozenset((
    "convert", "fuse_modules", "fuse_modules_qat", "get_default_qat_qconfig", "get_default_qconfig", "prepare",
    "prepare_qat", "quantize", "quantize_dynamic",
))  # fmt: skip


class QuantStub(Module):
    """Gives back what it gets."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """Gives back what it gets."""


class ObserverBase(Module):
    """What watches the range of values, for `isinstance`: there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}(): there are no quantised tensors")


class FakeQuantizeBase(ObserverBase):
    """What rounds values as a quantised model would, for `isinstance`: there is none."""


def disable_observer(mod: Module) -> None:
    """Do nothing, as for every module that is no observer; there is none. For `model.apply`."""


def disable_fake_quant(mod: Module) -> None:
    """Do nothing, as for every module that rounds no values; there is none that does. For `model.apply`."""


enable_observer = disable_observer
enable_fake_quant = disable_fake_quant


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if name not in _ORDERS:
        raise AttributeError(
            f"module 'rushlight.ao.quantization' has no attribute {name!r}: nothing is quantised"
        )

    def order(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"quantization.{name}(): there are no quantised tensors")

    order.__name__ = order.__qualname__ = name
    return order
