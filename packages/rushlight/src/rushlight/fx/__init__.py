"""Graphs of programs, which PyTorch traces from modules. There is no tracer: nothing is a `GraphModule`, and asking for one
raises NotImplementedError. `wrap` gives its function back, so that modules that mention it run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight_nn import Module

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "symbolic_trace",
    "wrap",
]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"fx.{name}(): there is no tracer of programs\nhint: hooks of modules see their inputs and results"
    )


class _Absent:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse(type(self).__name__)


class Graph(_Absent):
    """A traced program: there is none."""


class Node(_Absent):
    """An operation of a traced program: there is none."""


class Proxy(_Absent):
    """A value while a program is traced: there is none."""


class Tracer(_Absent):
    """What traces programs: it cannot be made."""


class Interpreter(_Absent):
    """What runs a traced program: it cannot be made."""


class Transformer(Interpreter):
    """What rewrites a traced program: it cannot be made."""


class GraphModule(Module):
    """A module made of a traced program: there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("GraphModule")


def symbolic_trace(root: Any, concrete_args: Any = None) -> NoReturn:
    """Raises NotImplementedError."""
    _refuse("symbolic_trace")


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """The function, or its name, as it is: no tracer would enter it."""
    return fn_or_name
