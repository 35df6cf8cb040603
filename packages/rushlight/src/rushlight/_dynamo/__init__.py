"""Settings of PyTorch's compiler, for programs that read or write them. There is no compiler: see `rushlight.compiler`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rushlight._dynamo import eval_frame as eval_frame
from rushlight._dynamo.eval_frame import OptimizedModule
from rushlight.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "reset",
]

#: Settings are stored, but have no effect.
config: Any = SimpleNamespace(suppress_errors=False, cache_size_limit=8, verbose=False)


def mark_dynamic(t: Any, index: Any = None, **options: Any) -> None:
    """No-op: there is no compiler that specialises programs to sizes. `export` takes `dynamic_shapes` instead.

    Example:
        >>> mark_dynamic(torch.ones(2, 3), 0)
    """


maybe_mark_dynamic = mark_static = mark_static_address = mark_dynamic


def graph_break(*args: Any, **kwargs: Any) -> None:
    """No-op: programs are not compiled, so there is no compiled graph to split."""
