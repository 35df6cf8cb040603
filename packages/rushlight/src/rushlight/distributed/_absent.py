"""Placeholders for classes that are not supported, and for functions that would create instances of these classes.

Programs can import the classes and pass them to `isinstance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight_core import Tensor

HINT = "hint: rushlight.distributed has process groups over shared memory, and DistributedDataParallel"


class Absent:
    """Base class of placeholders: creating an instance raises RuntimeError."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"distributed.{type(self).__name__}(): is not supported\n{HINT}")


def refused(name: str) -> Callable[..., NoReturn]:
    """Return a function with this name that raises RuntimeError when it is called."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"distributed.{name}(): is not supported\n{HINT}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = (
        f"Raise RuntimeError: `distributed.{name}` is not supported. It exists for programs that import it."
    )
    return refuse


all_to_all_single_autograd = refused("_functional_collectives.all_to_all_single_autograd")


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return the tensor unchanged. Collectives of this library return only tensors that are already computed.

    Shape:
        - Input and output: (*), of any shape.

    Example:
        >>> wait_tensor(torch.ones(2))
        tensor([1., 1.])
    """
    return tensor
