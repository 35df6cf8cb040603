"""Store the type of a value of a traced program in its node."""

from __future__ import annotations

from typing import Any

from rushlight.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Set the type of a Proxy's node, so that the generated code contains the type. Return `val`.

    Args:
        val: a Proxy, or any other object, which is returned without a change.
        type: the type.

    Raises:
        RuntimeError: the node already has a type.

    Example:
        >>> from rushlight.fx.annotate import annotate
        >>> print(torch.fx.symbolic_trace(lambda x: annotate(x + 1, torch.Tensor)).code.splitlines()[1])
            add : torch.Tensor = x + 1;  x = None
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type is not None:
        raise RuntimeError(
            f"fx.annotate(val): '{val.node}' already has the type {val.node.type}, and cannot be given {type}"
        )
    val.node.type = type
    return val
