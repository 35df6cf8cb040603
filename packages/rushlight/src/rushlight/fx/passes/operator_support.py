"""Decide which nodes of a graph a backend supports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from rushlight_core import dtype
from rushlight_nn import Module

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(ABC):
    """Base class of objects that decide which nodes a backend supports.

    Example:
        >>> class Additions(OperatorSupportBase):
        ...     def is_node_supported(self, submodules, node):
        ...         return node.name.startswith("add")
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> [Additions().is_node_supported({}, node) for node in traced.graph.nodes]
        [False, True, False, False]
    """

    @abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Return whether `node` is supported. `submodules` is a dict from paths to modules."""


class OperatorSupport(OperatorSupportBase):
    """An OperatorSupportBase that decides by the name of a call and by the dtypes of its arguments.

    Args:
        support_dict: a dict from the names of calls, as returned by `get_node_target`, to the supported
            dtypes. If a value is None, the call is supported for all dtypes. Any other value is a pair: a
            sequence with a list of dtypes for each positional argument, and a dict from keyword arguments to
            lists of dtypes. For an argument with None in place of a list, all dtypes are supported.
            Dtypes are known after `ShapeProp` has run the graph.

    Example:
        >>> support = OperatorSupport({"operator.add": None, "torch.relu": (([torch.float32],), {})})
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1))
        >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(2, dtype=torch.float64))
        >>> [support.is_node_supported({}, node) for node in traced.graph.nodes]
        [True, True, False, True]
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = dict(support_dict or {})

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Return whether `node` is supported. Nodes that are not calls are supported."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        if self._support_dict[target] is None:
            return True
        positional, named = self._support_dict[target]
        pairs = list(zip(node.args, positional, strict=False))
        pairs += [(node.kwargs[name], dtypes) for name, dtypes in named.items() if name in node.kwargs]
        return all(
            dtypes is None or not isinstance(argument, Node) or _dtype(argument) in dtypes
            for argument, dtypes in pairs
        )


def _dtype(node: Node) -> Any:
    meta: Any = node.meta.get("tensor_meta")
    return meta.dtype if hasattr(meta, "dtype") else node.meta.get("type")


class _Function(OperatorSupportBase):
    def __init__(self, function: IsNodeSupported) -> None:
        self._function = function

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Return an OperatorSupportBase whose method `is_node_supported` is the given function.

    Example:
        >>> support = create_op_support(lambda submodules, node: node.op != "call_module")
        >>> support.is_node_supported({}, torch.fx.Graph().placeholder("x"))
        True
    """
    return _Function(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return an OperatorSupportBase that supports a node if all the given objects support the node.

    Example:
        >>> add = OperatorSupport({"operator.add": None})
        >>> node = list(torch.fx.symbolic_trace(lambda x: x + 1).graph.nodes)[1]
        >>> chain(add, OpSupports.decline_if_node_in_names({"add"})).is_node_supported({}, node)
        False
    """
    return _Function(lambda modules, node: all(s.is_node_supported(modules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return an OperatorSupportBase that supports a node if at least one of the given objects supports the node.

    Example:
        >>> add, mul = OperatorSupport({"operator.add": None}), OperatorSupport({"operator.mul": None})
        >>> node = list(torch.fx.symbolic_trace(lambda x: x + 1).graph.nodes)[1]
        >>> any_chain(add, mul).is_node_supported({}, node)
        True
    """
    return _Function(lambda modules, node: any(s.is_node_supported(modules, node) for s in op_support))


class OpSupports:
    """Functions that return an OperatorSupportBase for a single condition. `chain` combines several conditions.

    Example:
        >>> support = OpSupports.decline_if_node_in_names({"x"})
        >>> support.is_node_supported({}, torch.fx.Graph().placeholder("x"))
        False
    """

    @classmethod
    def decline_if_input_dtype(cls, dtype: dtype) -> OperatorSupportBase:
        """Return an OperatorSupportBase that does not support nodes with an argument of this dtype."""
        return _Function(lambda _, node: all(_dtype(used) != dtype for used in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return an OperatorSupportBase that does not support nodes whose names are in `disallow_set`."""
        return _Function(lambda _, node: node.name not in disallow_set)
