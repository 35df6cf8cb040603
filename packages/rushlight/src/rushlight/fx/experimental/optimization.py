"""Change modules for inference."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import rushlight as torch
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Transformer
from rushlight.fx.node import Argument, Node, Target
from rushlight_nn import Module

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Module]) -> bool:
    """Return whether a node calls a layer on the result of another layer, and the layers have the given classes.

    Args:
        pattern: the classes of the first layer and of the layer that `node` calls.
        node: the node.
        modules: a dict from paths to modules.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> node = traced.graph.find_nodes(op="call_module")[1]
        >>> matches_module_pattern((nn.Linear, nn.ReLU), node, dict(traced.named_modules()))
        True
    """
    if not node.args:
        return False
    return all(
        isinstance(part, Node) and part.op == "call_module" and type(modules.get(str(part.target))) is kind
        for kind, part in zip(pattern, (node.args[0], node), strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Replace the layer that a node calls, in the parent module and in `modules`, a dict from paths to modules.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
        >>> node = traced.graph.find_nodes(op="call_module")[0]
        >>> replace_node_module(node, dict(traced.named_modules()), nn.Tanh())
        >>> traced(torch.tensor(0.0))
        tensor(0.)
    """
    parent, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """Return a traced module in which batch norms are folded into the convolutions and linear layers before them.

    A batch norm is folded if it uses running statistics, and if no other call uses the convolution or its
    result. The results change slightly, due to rounding.

    Args:
        model: a module in evaluation mode.
        inplace: whether the new module shares its layers with `model`. If False, `model` does not change.
        no_trace: whether to use the graph of a `model` that is a GraphModule, instead of tracing it again.

    Raises:
        ValueError: a layer to fold is in training mode.

    Example:
        >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
        >>> [node.target for node in fuse(model).graph.find_nodes(op="call_module")]
        ['0']
    """
    from rushlight_nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

    nn = torch.nn
    pairs = {
        nn.Conv1d: nn.BatchNorm1d,
        nn.Conv2d: nn.BatchNorm2d,
        nn.Conv3d: nn.BatchNorm3d,
        nn.Linear: nn.BatchNorm1d,
    }
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    graph = copy.deepcopy(traced.graph)
    modules: dict[str, Any] = dict(traced.named_modules(remove_duplicate=False))
    calls: dict[int, int] = {}
    for node in graph.find_nodes(op="call_module"):
        calls[id(modules[str(node.target)])] = calls.get(id(modules[str(node.target)]), 0) + 1
    for node in graph.find_nodes(op="call_module"):
        pair = next((pair for pair in pairs.items() if matches_module_pattern(pair, node, modules)), None)
        if pair is None or len(node.args[0].users) > 1:
            continue
        first: Any = node.args[0]
        layer, norm = modules[str(first.target)], modules[str(node.target)]
        if not norm.track_running_stats or calls[id(layer)] > 1:
            continue
        if layer.training or norm.training:
            raise ValueError(
                f"fx.fuse(model): must be in evaluation mode, but '{node.target}' is in training mode\n"
                "hint: call model.eval()"
            )
        folded = (fuse_linear_bn_eval if pair[0] is nn.Linear else fuse_conv_bn_eval)(layer, norm)
        replace_node_module(first, modules, folded)
        node.replace_all_uses_with(first)
        graph.erase_node(node)
    return GraphModule(traced, graph, type(traced).__name__)


def remove_dropout(model: Module) -> Module:
    """Return a traced module without the layers of class Dropout.

    Example:
        >>> traced = remove_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.ReLU()))
        >>> [node.target for node in traced.graph.find_nodes(op="call_module")]
        ['0', '2']
    """

    class Remover(Transformer):
        def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
            if isinstance(self.fetch_attr(str(target)), torch.nn.Dropout):
                return args[0] if args else kwargs["input"]
            return super().call_module(target, args, kwargs)

    return Remover(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """Return a module that runs the nodes `nodes` of a graph.

    Args:
        orig_module: the module to which the graph belongs.
        nodes: the nodes, in topological order.
        inputs: nodes whose results are the arguments of the new module.
        outputs: nodes whose results the new module returns as a list.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> x, add, mul, output = traced.graph.nodes
        >>> extract_subgraph(traced, [mul], [add], [mul])(torch.tensor(3.0))
        [tensor(6.)]
    """
    graph, copies = Graph(), dict[Node, Node]()
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
