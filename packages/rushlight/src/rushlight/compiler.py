"""What programs ask a compiler. There is none: see `rushlight.compile`."""

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
    """Return whether a compiler is tracing the program: never."""
    return False


is_dynamo_compiling: Callable[[], bool] = is_compiling
is_exporting: Callable[[], bool] = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` as it is, which is how it runs in any case; without it, a decorator."""
    return (lambda found: found) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` as it is."""
    return fn


assume_constant_result = allow_in_graph


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of compilers: none."""
    return []


def reset() -> None:
    """Do nothing: nothing is compiled."""


def cudagraph_mark_step_begin() -> None:
    """Mark a step for a recorder of CUDA graphs: there is none."""


class set_stance:  # noqa: N801
    """Whether to compile; accepted, as a call, a context manager or a decorator, and of no effect."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function
