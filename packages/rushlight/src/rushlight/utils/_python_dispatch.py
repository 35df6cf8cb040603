"""Placeholders for modes that intercept operators below autograd. Such modes are not supported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]

_HINT = "hint: __torch_function__ of a class intercepts functions; utils.flop_counter counts operations"


class TorchDispatchMode:
    """The base class of modes that intercept operators below autograd in PyTorch.

    Programs may define subclasses, but creating an instance raises NotImplementedError.

    Example:
        >>> from rushlight.utils._python_dispatch import TorchDispatchMode
        >>> class Logging(TorchDispatchMode):
        ...     pass
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}(): operators cannot be intercepted below autograd\n{_HINT}"
        )

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}: operators cannot be intercepted below autograd\n{_HINT}"
        )

    def __exit__(self, *error: object) -> None:
        pass


BaseTorchDispatchMode = TorchDispatchMode


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Return False: subclasses that wrap tensors and intercept operators below autograd are not supported.

    Example:
        >>> torch.utils._python_dispatch.is_traceable_wrapper_subclass(torch.ones(2))
        False
    """
    return False


is_traceable_wrapper_subclass_type: Callable[[Any], bool] = is_traceable_wrapper_subclass


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return False: no mode intercepts operators below autograd."""
    return False


def _get_current_dispatch_mode() -> None:
    return None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return []


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    yield []


def __getattr__(name: str) -> Any:
    if name not in ("return_and_correct_aliasing", "transform_subclass"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}\n{_HINT}")

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name}(): operators cannot be intercepted below autograd\n{_HINT}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse
