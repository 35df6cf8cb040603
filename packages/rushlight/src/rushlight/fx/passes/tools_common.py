"""Functions that inspect nodes, and sort the nodes of a graph."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, qualified_name
from rushlight_core import Tensor
from rushlight_nn import Module

__all__ = [
    "CALLABLE_NODE_OPS",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

#: The operations of nodes that call something.
CALLABLE_NODE_OPS = {"call_function", "call_method", "call_module"}


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """Return the name of the function, of the method, or of the module's class that a node calls.

    Args:
        submodules: a dict from paths to modules, such as `dict(module.named_modules())`.
        node: the node.

    Raises:
        AssertionError: the node is not a call.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
        >>> get_node_target(dict(traced.named_modules()), list(traced.graph.nodes)[1])
        'torch.nn.ReLU'
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"fx.get_node_target(node): must be a call, got a node of kind {node.op}")
    if node.op == "call_module":
        return qualified_name(type(submodules[str(node.target)]))
    return node.target if isinstance(node.target, str) else qualified_name(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Return whether the result of a node was a tensor when `ShapeProp` ran the graph.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.shape)
        >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(2))
        >>> [is_node_output_tensor(node) for node in traced.graph.nodes]
        [True, False, False]
    """
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def _sorted(gm: GraphModule, place: Callable[[int, int], tuple[int, int]]) -> GraphModule:
    """Sort the nodes topologically.

    The next node is always the node with the smallest key among the nodes whose arguments have all been
    placed in the new order. `place(number, count)` returns the key of a node. `number` is the position of the
    node in the old order, and `count` is the number of nodes in the new order when its last argument has been
    placed.
    """
    nodes = list(gm.graph.nodes)
    numbers = {node: number for number, node in enumerate(nodes)}
    missing = {node: len(node.all_input_nodes) for node in nodes}
    ready = [(place(numbers[node], 0), numbers[node]) for node in nodes if not missing[node]]
    heapq.heapify(ready)
    graph, copies = Graph(tracer_cls=gm.graph._tracer_cls), dict[Node, Node]()
    while ready:
        node = nodes[heapq.heappop(ready)[1]]
        copies[node] = graph.node_copy(node, copies.__getitem__)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (place(numbers[user], len(copies)), numbers[user]))
    if len(copies) < len(nodes):
        left = ", ".join(node.name for node in nodes if node not in copies)
        raise RuntimeError(f"fx: the nodes {left} use each other's results")
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sort the nodes of a module's graph so that each node follows its arguments, and return the module.

    Nodes are placed in the order in which their arguments become available. The sort ignores in-place
    modifications: a call that modifies a tensor may move before or after another call that reads the tensor.
    `stable_topological_sort` moves as few nodes as possible.

    Raises:
        RuntimeError: nodes use each other's results.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, mul, output = traced.graph.nodes
        >>> add.prepend(mul)
        >>> [node.name for node in legalize_graph(traced).graph.nodes]
        ['x', 'add', 'mul', 'output']
    """
    return _sorted(gm, lambda number, placed: (placed, number))


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Sort the nodes of a module's graph so that each node follows its arguments, and return the module.

    The order of the nodes changes as little as possible.

    Raises:
        RuntimeError: nodes use each other's results.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1) * 2 - x)
        >>> x, add, mul, sub, output = traced.graph.nodes
        >>> add.prepend(mul)
        >>> [node.name for node in stable_topological_sort(traced).graph.nodes]
        ['x', 'add', 'mul', 'sub', 'output']
    """
    return _sorted(gm, lambda number, placed: (number, 0))
