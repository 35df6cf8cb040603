"""Replace parts of a graph by calls of submodules."""

from __future__ import annotations

import copy
import heapq
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import stable_topological_sort
from rushlight.fx.passes.utils.common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: list[Node]) -> list[Node]:
    """Return the nodes in topological order: each node comes after the nodes whose results it uses.

    Raises:
        AssertionError: the nodes form a cycle.

    Example:
        >>> x, add, mul, output = torch.fx.symbolic_trace(lambda x: (x + 1) * 2).graph.nodes
        >>> topo_sort([mul, add])
        [add, mul]
    """
    numbers = {node: number for number, node in enumerate(nodes)}
    missing = {node: sum(used in numbers for used in node.all_input_nodes) for node in nodes}
    ready = [numbers[node] for node in nodes if not missing[node]]
    ordered: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        ordered.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, numbers[user])
    if len(ordered) < len(nodes):
        raise AssertionError("fx.topo_sort(nodes): the nodes use each other's results")
    return ordered


def validate_partition(partition: Iterable[Node]) -> bool:
    """Return whether one call can replace the nodes: no path between them leads through other nodes.

    Example:
        >>> x, add, mul, sub, output = torch.fx.symbolic_trace(lambda x: (x + 1) * 2 - 3).graph.nodes
        >>> validate_partition([add, mul]), validate_partition([add, sub])
        (True, False)
    """
    inside = set(partition)
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen = set(waiting)
    while waiting:
        for user in waiting.pop().users:
            if user in inside:
                return False
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: Mapping[Node, Any] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Copy nodes of a module into a new GraphModule. `gm` does not change.

    Args:
        gm: the module.
        nodes: the nodes in topological order.
        module_name: the name of the class of the new module.
        partition_lookup_table: not used; PyTorch has this argument, too.
        always_return_tuple: whether a module with a single result returns a tuple, too.

    Returns:
        the new module, the nodes of `gm` that are its arguments, and the nodes of `gm` whose results it returns.

    Raises:
        AssertionError: a node does not belong to `gm`, or one call cannot replace the nodes.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, mul, output = traced.graph.nodes
        >>> module, inputs, outputs = fuse_as_graphmodule(traced, [add], "Fused")
        >>> module(torch.tensor(3.0)), inputs, outputs
        (tensor(4.), (x,), (add,))
    """
    for node in nodes:
        if node._erased or node.graph.owning_module is not gm:
            raise AssertionError(f"fx.fuse_as_graphmodule(nodes): '{node}' does not belong to the module")
    if not validate_partition(nodes):
        raise AssertionError(
            "fx.fuse_as_graphmodule(nodes): one call cannot replace the nodes, because a node outside the "
            "list uses the result of one node of the list, and another node of the list depends on it"
        )
    graph, inside = Graph(), set(nodes)
    copies: dict[Node, Node] = {}
    inputs = tuple(
        dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in inside)
    )
    for used in inputs:
        copies[used] = graph.placeholder(used.name, used.type)
        copies[used].meta = copy.copy(used.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    outputs = tuple(node for node in nodes if any(user not in inside for user in node.users))
    results = tuple(copies[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    module, _ = lift_subgraph_as_module(gm, graph, class_name=module_name)
    return module, inputs, outputs


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Add a submodule and call it; its results replace the results of `orig_outputs`. Return `gm`.

    Args:
        gm: the module.
        sub_gm: the submodule. In `gm`, the submodule has the name of its class.
        orig_inputs: the arguments of the call.
        orig_outputs: the nodes that the results replace.
        insertion_point: the node after which the call is inserted; by default the last of `orig_outputs`.

    Raises:
        AssertionError: `orig_outputs` is empty and `insertion_point` is None.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, mul, output = traced.graph.nodes
        >>> _ = insert_subgm(traced, *fuse_as_graphmodule(traced, [add], "Fused"))
        >>> mul.args
        (fused, 2)
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        last = [node for node in gm.graph.nodes if node in orig_outputs]
        if not last:
            raise AssertionError("fx.insert_subgm(insertion_point): must be given if orig_outputs is empty")
        insertion_point = last[-1]
    with gm.graph.inserting_after(insertion_point):
        called = gm.graph.call_module(name, orig_inputs)
        if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
            orig_outputs[0].replace_all_uses_with(called, propagate_meta=True)
            return gm
        for number, node in enumerate(orig_outputs):
            result = gm.graph.call_function(operator.getitem, (called, number))
            node.replace_all_uses_with(result, propagate_meta=True)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Erase the nodes of a list from last to first. A node may be used only by later nodes of the list.

    Raises:
        RuntimeError: a node outside the list uses a node in the list.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: (x, x + 1)[0])
        >>> erase_nodes(traced, [list(traced.graph.nodes)[1]])
        >>> [node.name for node in traced.graph.nodes]
        ['x', 'output']
    """
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Replace each part of a graph in `partitions` by a call of a submodule. Return the module.

    Args:
        gm: the module, which is modified in place.
        partitions: the parts: lists of nodes, or dicts whose keys are nodes.
        prefix: the prefix of the names of the submodules; a number is appended.
        always_return_tuple: whether submodules with a single result return a tuple, too.

    Raises:
        AssertionError: one call cannot replace the nodes of a part.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: ((x + 1) * 2).relu())
        >>> nodes = list(traced.graph.nodes)
        >>> print(fuse_by_partitions(traced, [nodes[1:3]]).code.strip())
        def forward(self, x):
            fused_0 = self.fused_0(x);  x = None
            relu = fused_0.relu();  fused_0 = None
            return relu
    """
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        parts = fuse_as_graphmodule(gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple)
        insert_subgm(gm, *parts, insertion_point=nodes[-1])
        erase_nodes(gm, nodes)
    return stable_topological_sort(gm)
