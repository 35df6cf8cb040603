"""Split a module into submodules by tags of its nodes."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, field
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.passes.utils.common import lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute at a path, such as "layer.weight", or None if a part of the path does not exist.

    Example:
        >>> getattr_recursive(nn.Sequential(nn.Linear(2, 3)), "0.bias").shape
        torch.Size([3])
    """
    for part in name.split("."):
        obj = getattr(obj, part, None)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at a path, such as "layer.weight".

    Example:
        >>> model = nn.Sequential(nn.Sequential(nn.ReLU()))
        >>> setattr_recursive(model, "0.0", nn.Tanh())
        >>> model[0][0]
        Tanh()
    """
    *folders, name = attr.split(".")
    for part in folders:
        obj = getattr(obj, part)
    setattr(obj, name, value)


@dataclass
class Component:
    """The nodes with one tag, which `split_by_tags` puts into one submodule.

    Attributes:
        graph: the graph of the submodule.
        order: the index of the tag in the list of tags.
        name: the tag.
        orig_inputs: the nodes of the original graph that are arguments of the submodule.
        orig_outputs: the nodes of the original graph that the submodule returns.
        gm: the submodule.

    Example:
        >>> Component(torch.fx.Graph(), 0, "encoder").orig_inputs
        []
    """

    graph: Graph
    order: int
    name: str
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    gm: GraphModule | None = None


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """Return a module with a submodule for each tag. The submodule contains the calls whose nodes have this tag.

    The attribute `tag` of a node is its tag. All calls must have tags. The tags of other nodes are ignored.

    Args:
        gm: the traced module.
        tags: the tags in the order in which the submodules run.
        return_fqn_mapping: whether to return a tuple of the module and a dict from the paths of modules, parameters and
            buffers in `gm` to their paths in the new module.
        return_tuple: whether submodules with a single result return a tuple, too.
        GraphModuleCls: the class of the new module.

    Raises:
        ValueError: a call has no tag or a tag that is not in `tags`, or uses the result of a call with a later tag.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)))
        >>> for node, tag in zip(traced.graph.find_nodes(op="call_module"), ["first", "first", "last"]):
        ...     node.tag = tag
        >>> split = split_by_tags(traced, ["first", "last"])
        >>> [(node.name, node.args) for node in split.graph.nodes if node.op == "call_module"]
        [('first', (input_1,)), ('last', (first,))]
    """
    components = {tag: Component(Graph(), number, tag) for number, tag in enumerate(tags)}
    home: dict[Node, Component] = {}
    used_outside: dict[Node, None] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        tag = getattr(node, "tag", None)
        if tag not in components:
            raise ValueError(
                f"fx.split_by_tags(tags): '{node}' has the tag {tag!r}, which is not one of {tags}"
            )
        own = home[node] = components[tag]
        for used in node.all_input_nodes:
            if used in home and home[used].order > own.order:
                raise ValueError(
                    f"fx.split_by_tags(tags): '{node}' with the tag {tag!r} uses '{used}' with the later tag "
                    f"{home[used].name!r}"
                )
        _copy(node, own, used_outside)
    output = gm.graph.output_node()
    for node in (*used_outside, *output.all_input_nodes):
        if node in home and node not in home[node].orig_outputs:
            home[node].orig_outputs.append(node)
    return _outer(gm, list(components.values()), return_fqn_mapping, return_tuple, GraphModuleCls)


def _copy(node: Node, own: Component, used_outside: dict[Node, None]) -> None:
    """Copy a node into the graph of its component. `graph._copies` maps the original nodes to nodes of this graph.

    Each argument that is a placeholder of the original graph, or that another component computes, becomes a
    placeholder of this graph, and is added to `used_outside`.
    """
    copies: dict[Node, Node] = own.graph.__dict__.setdefault("_copies", {})

    def copy_of(used: Node) -> Node:
        if used not in copies:
            if used.op == "get_attr":
                copies[used] = own.graph.get_attr(str(used.target), used.type)
            else:
                with own.graph._inserting(_after_placeholders(own.graph)):
                    copies[used] = own.graph.placeholder(used.name, used.type)
                own.orig_inputs.append(used)
                used_outside[used] = None
            copies[used].meta = copy.copy(used.meta)
        return copies[used]

    copies[node] = own.graph.node_copy(node, copy_of)
    copies[node].tag = own.name  # type: ignore[attr-defined]


def _after_placeholders(graph: Graph) -> Any:
    first = next((node for node in graph.nodes if node.op != "placeholder"), None)
    return graph._root.prepend if first is None else first.prepend


def _outer(
    gm: GraphModule,
    components: list[Component],
    return_mapping: bool,
    return_tuple: bool,
    cls: type[GraphModule],
) -> Any:
    graph, values, paths = Graph(), dict[Node, Node](), dict[str, str]()
    for node in gm.graph.find_nodes(op="placeholder"):
        values[node] = graph.node_copy(node)
    attributes: dict[str, Any] = {}
    for component in components:
        copies = component.graph.__dict__.pop("_copies", {})
        results = tuple(copies[node] for node in component.orig_outputs)
        single = len(results) == 1 and not return_tuple
        component.graph.output(results[0] if single else results)
        component.gm, known = lift_subgraph_as_module(gm, component.graph, component.name)
        paths.update(known)
        attributes[component.name] = component.gm
        called = graph.call_module(component.name, tuple(values[node] for node in component.orig_inputs))
        for number, node in enumerate(component.orig_outputs):
            values[node] = called if single else graph.call_function(operator.getitem, (called, number))
    output = gm.graph.output_node()
    for node in output.all_input_nodes:
        if node.op == "get_attr":
            values[node] = graph.node_copy(node)
            attributes[str(node.target)] = getattr_recursive(gm, str(node.target))
    graph.output(map_arg(output.args[0], values.__getitem__), output.type)
    graph.set_codegen(copy.deepcopy(gm.graph._codegen))
    split = cls(attributes, graph)
    split.training = gm.training
    return (split, paths) if return_mapping else split
