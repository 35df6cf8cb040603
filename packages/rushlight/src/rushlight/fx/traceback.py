"""Metadata that new nodes inherit from annotations in the program or from nodes of another graph."""

from __future__ import annotations

import copy
import functools
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from rushlight.fx.node import Node

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "get_current_replay_node",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_current_replay_node",
    "set_stack_trace",
]

# The keys of `node.meta` that a new node inherits, besides "stack_trace".
_INHERITED = (
    "nn_module_stack",
    "source_fn_stack",
    "original_aten",
    "recompute",
    "from_node",
    "quantization_tag",
    "custom",
    "partitioner_tag",
)


class _State(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserve = False
        self.replayed: Node | None = None


_state = _State()


class NodeSourceAction(Enum):
    """How a pass created a node from another node.

    Example:
        >>> NodeSourceAction.CREATE.value
        'create'
    """

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The node from which a pass over a graph created another node; see `node.meta["from_node"]`.

    Args:
        node: the original node, or None.
        pass_name: the name of the pass.
        action: what the pass did: a NodeSourceAction, a list of them, or None.

    Attributes:
        name, target, graph_id: the name and the target of the original node, and the `id` of its graph.
        from_node: the nodes from which another pass created the original node.

    Example:
        >>> source = NodeSource(torch.fx.Graph().placeholder("x"), "fuse", NodeSourceAction.REPLACE)
        >>> source.name, source.pass_name, source.to_dict()["action"]
        ('x', 'fuse', 'replace')
    """

    def __init__(
        self,
        node: Node | None,
        pass_name: str = "",
        action: NodeSourceAction | list[NodeSourceAction] | None = None,
    ) -> None:
        self.pass_name = pass_name
        self.action: list[NodeSourceAction] = (
            list(action) if isinstance(action, list) else [] if action is None else [action]
        )
        self.name: str = "" if node is None else node.name
        self.target: str = "" if node is None else str(node.target)
        self.graph_id: int = -1 if node is None else id(node.graph)
        self.from_node: list[NodeSource] = [] if node is None else list(node.meta.get("from_node", ()))

    def print_readable(self, indent: int = 0) -> str:
        """Return text with one line for each pass. Older passes are indented."""
        shown = f"(name={self.name}, pass_name={self.pass_name}, action={self._action()}, graph_id={self.graph_id})"
        return f"{'    ' * indent}{shown}\n" + "".join(
            source.print_readable(indent + 1) for source in self.from_node
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a dict of strings, numbers and lists of such dicts."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._action(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def _action(self) -> str:
        return "+".join(action.value for action in self.action)

    def __repr__(self) -> str:
        return self.print_readable()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name, self._action()))


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Return a context manager in which new nodes inherit metadata.

    In this context, a Transformer and a trace copy entries of the current metadata (`get_current_meta`) to
    the `meta` of each new node, such as "stack_trace", "nn_module_stack" and "custom". While an Interpreter
    runs a node, the current metadata is the `meta` of this node, and the entry "from_node" of the new nodes
    is a list that contains one NodeSource, which describes this node.

    Args:
        enable: whether new nodes inherit metadata.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.relu())
        >>> for node in traced.graph.nodes:
        ...     node.meta["custom"] = {"stage": 1}
        >>> with torch.fx.traceback.preserve_node_meta():
        ...     copied = torch.fx.Transformer(traced).transform()
        >>> [node.meta.get("custom") for node in copied.graph.find_nodes(op="call_method")]
        [{'stage': 1}]
    """
    before, _state.preserve = _state.preserve, enable
    meta, _state.meta = _state.meta, dict(_state.meta)
    try:
        yield
    finally:
        _state.preserve, _state.meta = before, meta


def has_preserved_node_meta() -> bool:
    """Return whether the calling thread is in `preserve_node_meta`.

    Example:
        >>> has_preserved_node_meta()
        False
    """
    return _state.preserve


def get_current_meta() -> dict[str, Any]:
    """Return the metadata that new nodes inherit in `preserve_node_meta`. The dict may be changed.

    Example:
        >>> with torch.fx.traceback.annotate({"stage": 1}):
        ...     torch.fx.traceback.get_current_meta()
        {'custom': {'stage': 1}}
    """
    return _state.meta


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Return a context manager in which new nodes inherit the metadata of `node`; see `preserve_node_meta`.

    Args:
        node: the node. The context manager has no effect outside of `preserve_node_meta`, or if the node's
            `meta` is empty.
        pass_name: the name of the pass, which is stored in `meta["from_node"]` of new nodes.

    Example:
        >>> node = torch.fx.Graph().placeholder("x")
        >>> node.meta["custom"] = {"stage": 2}
        >>> with preserve_node_meta(), set_current_meta(node):
        ...     get_current_meta()["custom"]
        {'stage': 2}
    """
    if not (_state.preserve and node.meta):
        yield
        return
    before = _state.meta
    _state.meta = {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}
    try:
        yield
    finally:
        _state.meta = before


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Return a context manager in which new nodes get the entries of `annotation_dict` in `meta["custom"]`.

    The entries are added to the nodes of a trace within `preserve_node_meta`.

    Args:
        annotation_dict: the entries. Context managers may be nested; an inner one replaces entries of the same key.

    Example:
        >>> def model(x):
        ...     with torch.fx.traceback.annotate({"stage": 1}):
        ...         x = x.relu()
        ...     return x.neg()
        >>> with torch.fx.traceback.preserve_node_meta():
        ...     traced = torch.fx.symbolic_trace(model)
        >>> [node.meta.get("custom") for node in traced.graph.nodes]
        [None, {'stage': 1}, None, None]
    """
    before = _state.meta
    _state.meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _state.meta = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that runs each call of a function in `annotate(annotation_dict)`.

    Example:
        >>> @torch.fx.traceback.annotate_fn({"stage": 1})
        ... def current():
        ...     return torch.fx.traceback.get_current_meta()["custom"]
        >>> current()
        {'stage': 1}
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


def set_stack_trace(stack: list[str]) -> None:
    """Set the stack trace of new nodes within `preserve_node_meta`. Elsewhere, do nothing.

    The strings in `stack` are joined, and become the `stack_trace` of each node.

    Example:
        >>> with preserve_node_meta():
        ...     set_stack_trace(["line 3 of the model"])
        ...     traced = torch.fx.symbolic_trace(lambda x: x.relu())
        >>> traced.graph.output_node().stack_trace
        'line 3 of the model'
    """
    if not _state.preserve:
        return
    if stack:
        _state.meta["stack_trace"] = "".join(stack)
    else:
        _state.meta.pop("stack_trace", None)


def format_stack() -> list[str]:
    """Return the lines of a stack trace as a list of strings.

    Within `preserve_node_meta`, return the text that `set_stack_trace` has set, as one string. Elsewhere,
    return the stack of the calling thread.

    Example:
        >>> with preserve_node_meta():
        ...     set_stack_trace(["line 3 of the model"])
        ...     format_stack()
        ['line 3 of the model']
    """
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """Return a context manager in which `get_current_replay_node` returns `node`.

    Example:
        >>> node = torch.fx.Graph().placeholder("x")
        >>> with set_current_replay_node(node):
        ...     get_current_replay_node()
        x
    """
    before, _state.replayed = _state.replayed, node
    try:
        yield
    finally:
        _state.replayed = before


def get_current_replay_node() -> Node | None:
    """Return the node of the innermost `set_current_replay_node`, or None.

    Example:
        >>> get_current_replay_node() is None
        True
    """
    return _state.replayed


def _add_current_meta(node: Node) -> None:
    """Copy the inherited metadata to a new node."""
    if not _state.preserve:
        return
    if trace := _state.meta.get("stack_trace"):
        node.stack_trace = trace
    for key in _INHERITED:
        if key in _state.meta:
            node.meta[key] = copy.copy(_state.meta[key])


def __getattr__(name: str) -> Any:
    if name == "current_meta":
        return _state.meta
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
