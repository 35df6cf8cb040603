"""Create modules from parts of a graph, and compare graphs."""

from __future__ import annotations

from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight_core.pytree import tree_flatten
from rushlight_nn import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module with the given children.

    Args:
        d: a dict from names to modules.

    Example:
        >>> list(dict(HolderModule({"act": nn.ReLU()}).named_children()))
        ['act']
    """

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, child in d.items():
            self.add_module(name, child)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Create a GraphModule from a graph that contains copies of nodes of `gm`.

    The GraphModule and `gm` share the modules, parameters and buffers that the graph uses.

    Args:
        gm: the module.
        subgraph: the graph.
        comp_name: the name under which the new module will be added to a parent module.
        class_name: the name of the new module's class.

    Returns:
        the GraphModule, and a dict from each path in `gm` that the graph uses to the path in the parent module.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
        >>> part, paths = lift_subgraph_as_module(traced, torch.fx.Graph(), "part")
        >>> paths
        {}
    """
    module = GraphModule(gm, subgraph, class_name)
    paths = [str(node.target) for node in subgraph.nodes if node.op in ("call_module", "get_attr")]
    return module, {path: f"{comp_name}.{path}" if comp_name else path for path in paths}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Return whether two graphs make the same calls with the same arguments, and return the same results.

    The order of calls and the names of nodes may differ.

    Example:
        >>> trace = torch.fx.symbolic_trace
        >>> compare_graphs(trace(lambda x: x + 1).graph, trace(lambda y: y + 1).graph)
        True
        >>> compare_graphs(trace(lambda x: x + 1).graph, trace(lambda x: x - 1).graph)
        False
    """
    if len(left.nodes) != len(right.nodes):
        return False
    partner: dict[Node, Node] = {}
    taken: set[Node] = set()
    pairs = [(left.output_node(), right.output_node())]
    while pairs:
        mine, other = pairs.pop()
        if mine in partner or other in taken:
            if partner.get(mine) is not other:
                return False
            continue
        partner[mine] = other
        taken.add(other)
        if mine.op != other.op or (mine.op != "placeholder" and mine.target != other.target):
            return False
        sides = [tree_flatten((node.args, dict(node.kwargs))) for node in (mine, other)]
        (values, form), (others, other_form) = sides
        if form != other_form:
            return False
        for value, wanted in zip(values, others, strict=True):
            if isinstance(value, Node) and isinstance(wanted, Node):
                pairs.append((value, wanted))
            elif type(value) is not type(wanted) or value != wanted:
                return False
    order = [node for node in left.nodes if node.op == "placeholder" and node in partner]
    return [partner[node] for node in order] == [
        node for node in right.nodes if node.op == "placeholder" and node in taken
    ]
