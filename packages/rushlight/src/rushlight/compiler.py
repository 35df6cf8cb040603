"""Queries and settings of PyTorch's compiler, which rushlight does not have: see `rushlight.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight_core import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def is_compiling() -> bool:
    """Return False: programs are not compiled.

    Example:
        >>> torch.compiler.is_compiling()
        False
    """
    return False


is_dynamo_compiling: Callable[[], bool] = is_compiling
is_exporting: Callable[[], bool] = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return `fn` unchanged, or a decorator if `fn` is None. Functions are never compiled.

    Args:
        fn: a function.
        recursive, reason: have no effect.

    Example:
        >>> @torch.compiler.disable
        ... def double(x):
        ...     return 2 * x
        >>> double(torch.tensor([1.0]))
        tensor([2.])
    """
    return (lambda found: found) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn` unchanged.

    Example:
        >>> torch.compiler.allow_in_graph(len) is len
        True
    """
    return fn


assume_constant_result = allow_in_graph


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return an empty list: there are no compilers.

    Example:
        >>> torch.compiler.list_backends()
        []
    """
    return []


def reset() -> None:
    """No-op: there is no compiled code to discard.

    Example:
        >>> torch.compiler.reset()
    """


def cudagraph_mark_step_begin() -> None:
    """No-op: no compiler records CUDA graphs.

    Example:
        >>> torch.compiler.cudagraph_mark_step_begin()
    """


class set_stance:  # noqa: N801
    """Accept PyTorch's settings for `compile`, which have no effect in rushlight.

    `set_stance` can be called as a function, used in a `with` statement, or used as a decorator.

    Args:
        stance: the setting, such as "force_eager"; it is stored, but has no effect.

    Example:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     _ = torch.ones(2) + 1
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function
