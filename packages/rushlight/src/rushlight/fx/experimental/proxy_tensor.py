"""The names of PyTorch's operator tracer, which rushlight does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """Return None, because operators are never traced with proxy tensors.

    Example:
        >>> get_proxy_mode() is None
        True
    """
    return


def make_fx(f: Callable[..., Any], *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: operators are recorded by `torch.export`, and not in graphs of `torch.fx`.

    Raises:
        NotImplementedError: always.

    Example:
        >>> make_fx(lambda x: x + 1)
        Traceback (most recent call last):
            ...
        NotImplementedError: fx.make_fx(): graphs of torch.fx cannot hold the operators ...
    """
    raise NotImplementedError(
        "fx.make_fx(): graphs of torch.fx cannot hold the operators that a function calls, because some "
        "operators have no Python function\n"
        "hint: torch.export.export records the operators of a module, also those of gradients and "
        "transforms, and torch.fx.symbolic_trace records the calls in Python"
    )
