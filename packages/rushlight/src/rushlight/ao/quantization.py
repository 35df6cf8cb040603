"""Quantisation of models, which is not supported.

The modules that mark where quantised computation begins and ends return their inputs, as in a model that is not quantised.
Functions that quantise a model raise NotImplementedError.
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
    """Identity module that marks where quantised computation would begin.

    Shape:
        - Input and output: (*), of any shape.

    Example:
        >>> torch.ao.quantization.QuantStub()(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """Identity module that marks where quantised computation would end.

    Shape:
        - Input and output: (*), of any shape.

    Example:
        >>> torch.ao.quantization.DeQuantStub()(torch.ones(2))
        tensor([1., 1.])
    """


class ObserverBase(Module):
    """A placeholder for the class of observers, which record the range of values. Use it for `isinstance` checks.

    Creating an instance raises NotImplementedError.

    Example:
        >>> any(isinstance(part, torch.ao.quantization.ObserverBase) for part in nn.Linear(2, 2).modules())
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}(): quantised tensors are not supported")


class FakeQuantizeBase(ObserverBase):
    """A placeholder for the class of modules that simulate quantisation. Use it for `isinstance` checks.

    Creating an instance raises NotImplementedError.

    Example:
        >>> any(isinstance(part, torch.ao.quantization.FakeQuantizeBase) for part in nn.Linear(2, 2).modules())
        False
    """


def disable_observer(mod: Module) -> None:
    """No-op for `model.apply`: there are no observers to disable.

    Example:
        >>> _ = nn.Linear(2, 2).apply(torch.ao.quantization.disable_observer)
    """


def disable_fake_quant(mod: Module) -> None:
    """No-op for `model.apply`: there are no fake-quantisation modules to disable.

    Example:
        >>> _ = nn.Linear(2, 2).apply(torch.ao.quantization.disable_fake_quant)
    """


enable_observer = disable_observer
enable_fake_quant = disable_fake_quant


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if name not in _ORDERS:
        raise AttributeError(
            f"module 'rushlight.ao.quantization' has no attribute {name!r}: quantisation is not supported"
        )

    def order(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"quantization.{name}(): quantised tensors are not supported")

    order.__name__ = order.__qualname__ = name
    return order
