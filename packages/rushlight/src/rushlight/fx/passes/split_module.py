"""Split a module into submodules."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight_nn import Module

__all__ = ["Partition", "split_module"]


class Partition:
    """The nodes of a module that `split_module` puts into one submodule.

    Attributes:
        name: the number that `split_callback` returned, with the affix.
        submod_name: the name of the submodule.
        node_names: the names of the nodes.
        inputs: the names of the nodes outside the partition whose results the partition uses.
        outputs: the names of the nodes of the partition whose results are used outside the partition.
        dependencies: the names of the partitions whose results this partition uses.

    Example:
        >>> Partition("0").submod_name
        'submod_0'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name: str = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.graph: Graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n"
            f" outputs: {list(self.outputs)},\n partitions depended on: {list(self.dependencies)}"
        )

    def target_of(self, path: str, value: Any) -> str:
        """Return the name under which the submodule stores `value`, the attribute at `path` in the module."""
        base = name = path.replace(".", "_")
        number = 0
        while name in self.targets and self.targets[name] is not value:
            number += 1
            name = f"{base}_{number}"
        self.targets[name] = value
        return name


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Return a module that calls submodules `submod_0`, `submod_1` and so on, each with a part of the graph of `m`.

    The submodules run in the order in which their first calls occur, except that a submodule always runs
    after the submodules whose results it uses. In-place operations are not treated specially: put them into
    the same part as the other calls that use the tensor.

    Args:
        m: the traced module.
        root_m: not used; PyTorch has this argument, too.
        split_callback: a function that returns the number of the part for a node. It is not called for
            placeholders, `get_attr` nodes and the output.
        qualname_map: a dict to fill. It maps the path of each called module in the result to the path of this
            module in `m`.
        keep_original_order: whether attributes are read directly before the first submodule that uses them. If False,
            attributes are read before the first submodule runs.
        keep_original_node_name: whether nodes have the same names as in `m`.
        keep_original_input_name: whether each argument of a submodule has the name of the node whose result is passed. If
            False, the arguments are called `arg_0`, `arg_1` and so on.
        partition_affix: inserted into the names of the submodules, such as `submod_<affix>_0`.
        tuple_return: whether a submodule with a single result returns a tuple, too.

    Raises:
        RuntimeError: two parts use each other's results.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)))
        >>> split = split_module(traced, None, lambda node: 0 if node.target == "0" else 1)
        >>> [(node.name, node.args) for node in split.graph.nodes if node.op == "call_module"]
        [('submod_0', (input_1,)), ('submod_1', (submod_0,))]
    """
    partitions: dict[str, Partition] = {}
    part_of: dict[Node, Partition] = {}
    nodes = {node.name: node for node in m.graph.nodes}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(split_callback(node))
        name = name if partition_affix is None else f"{partition_affix}_{name}"
        part = part_of[node] = partitions.setdefault(name, Partition(name))
        part.node_names.append(node.name)
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            continue
        for used in node.all_input_nodes:
            _use(part_of.get(used), used, part_of.get(node))
    ordered = _ordered(partitions)
    for part in ordered:
        _add_inputs(part, m, nodes, bool(keep_original_input_name))
    for node, part in part_of.items():
        target = node.target
        if node.op == "call_module":
            target = part.target_of(str(node.target), m.get_submodule(str(node.target)))
            if qualname_map is not None:
                qualname_map[f"{part.submod_name}.{target}"] = str(node.target)
        copied = part.graph.create_node(
            node.op,
            target,
            map_arg(node.args, part.environment.__getitem__),
            dict(map_arg(node.kwargs, part.environment.__getitem__)),
            node.name if keep_original_node_name else None,
            node.type,
        )
        copied.meta = dict(node.meta)
        part.environment[node] = copied
    return _outer_module(
        m, ordered, nodes, bool(keep_original_order), bool(keep_original_node_name), tuple_return
    )


def _use(defined: Partition | None, node: Node, user: Partition | None) -> None:
    """Record that the part `user` uses `node`, which belongs to the part `defined`.

    `defined` is None if `node` belongs to no part, such as a placeholder. `user` is None if the output of the
    module uses `node`.
    """
    if defined is user:
        return
    if defined is not None:
        defined.outputs[node.name] = None
    if user is not None:
        user.inputs[node.name] = None
        if defined is not None:
            user.dependencies[defined.name] = None


def _ordered(partitions: dict[str, Partition]) -> list[Partition]:
    ordered: dict[str, Partition] = {}
    while len(ordered) < len(partitions):
        ready = (
            part
            for part in partitions.values()
            if part.name not in ordered and part.dependencies.keys() <= ordered.keys()
        )
        part = next(ready, None)
        if part is None:
            names = ", ".join(part.submod_name for part in partitions.values() if part.name not in ordered)
            raise RuntimeError(
                f"fx.split_module(split_callback): cycle exists between partitions! {names} use each other's results"
            )
        ordered[part.name] = part
    return list(ordered.values())


def _attribute(m: GraphModule, node: Node) -> Any:
    value: Any = m
    for name in str(node.target).split("."):
        value = getattr(value, name)
    return value


def _add_inputs(part: Partition, m: GraphModule, nodes: dict[str, Node], keep_names: bool) -> None:
    inputs: dict[str, None] = {}
    modules: list[Node] = []
    for name in part.inputs:
        node = nodes[name]
        if node.op == "get_attr" and isinstance(_attribute(m, node), Module):
            modules.append(node)
            continue
        placeholder = part.graph.placeholder(name if keep_names else f"arg_{len(inputs)}", node.type)
        placeholder.meta = dict(node.meta)
        part.environment[node] = placeholder
        inputs[name] = None
    for node in modules:  # a module cannot be passed as an argument
        read = part.graph.get_attr(part.target_of(str(node.target), _attribute(m, node)))
        read.meta = dict(node.meta)
        part.environment[node] = read
    part.inputs = inputs


def _outer_module(
    m: GraphModule,
    ordered: list[Partition],
    nodes: dict[str, Node],
    keep_order: bool,
    keep_names: bool,
    tuple_return: bool,
) -> GraphModule:
    graph, values, attributes = Graph(), dict[str, Node](), dict[str, Any]()

    def read(node: Node) -> None:
        if node.name in values:
            return
        name = node.name if keep_names else None
        made = graph.create_node(node.op, node.target, node.args, {}, name, node.type)
        made.meta = dict(node.meta)
        values[node.name] = made
        if node.op == "get_attr":
            attributes[str(node.target)] = _attribute(m, node)

    used = {name for part in ordered for name in part.inputs}
    used.update(node.name for node in m.graph.output_node().all_input_nodes)
    for node in nodes.values():
        if node.op == "placeholder" or (node.op == "get_attr" and not keep_order and node.name in used):
            read(node)
    for part in ordered:
        for name in part.inputs:
            if nodes[name].op == "get_attr":
                read(nodes[name])
        results = tuple(part.environment[nodes[name]] for name in part.outputs)
        single = len(results) == 1 and not tuple_return
        part.graph.output(results[0] if single else results)
        made = GraphModule(part.targets, part.graph)
        made.training = m.training
        attributes[part.submod_name] = made
        called = graph.call_module(part.submod_name, tuple(values[name] for name in part.inputs))
        for number, name in enumerate(part.outputs):
            values[name] = called if single else graph.call_function(operator.getitem, (called, number))
    output = m.graph.output_node()
    for node in output.all_input_nodes:
        if node.op == "get_attr":
            read(node)
    graph.output(map_arg(output.args[0], lambda node: values[node.name]), output.type)
    graph.set_codegen(copy.deepcopy(m.graph._codegen))
    split = GraphModule(attributes, graph)
    split.training = m.training
    split.meta["partition_names"] = {part.submod_name for part in ordered}
    return split
