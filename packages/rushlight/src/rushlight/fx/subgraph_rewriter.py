"""Replace the parts of a graph that match a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _copy_attr
from rushlight.fx.node import Node
from rushlight_core import Tensor
from rushlight_nn import Module

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A part of a graph that matched a pattern.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> (match,) = torch.fx.replace_pattern(traced, lambda x: x.relu(), lambda x: x.tanh())
        >>> match.anchor.name, [node.name for node in match.nodes_map.values()]
        ('relu', ['x', 'relu'])
    """

    #: The node of the graph that matched the last node of the pattern.
    anchor: Node
    #: The node of the graph for each node of the pattern.
    nodes_map: dict[Node, Node]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Find the parts of a graph that make the same calls as `pattern`, and replace them by the calls of `replacement`.

    An argument of the pattern matches any node, and different arguments match different nodes. A part is not replaced if
    nodes outside the part use one of its intermediate values. If two matches overlap, only the match whose calls come first
    is replaced.

    Args:
        gm: the module whose graph is changed. It is recompiled.
        pattern: a function, which is traced, or a traced module.
        replacement: a function or a traced module with the same number of arguments and of results. Its modules and
            tensors are added to `gm` if `gm` has nothing at their paths.

    Returns:
        the matches. The matched calls have been erased from the graph; nodes that matched arguments of the pattern remain.

    Raises:
        ValueError: `pattern` returns anything other than results of calls, or does not use an argument, or `replacement` has
            another number of arguments or results.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x, y: torch.relu(x + y) * 2)
        >>> matches = torch.fx.replace_pattern(traced, lambda a, b: torch.relu(a + b), lambda a, b: torch.add(a, b).tanh())
        >>> len(matches), traced(torch.zeros(2), torch.zeros(2))
        (1, tensor([0., 0.]))
    """
    searched, made = _traced(pattern), _traced(replacement)
    arguments, results = _arguments(searched.graph), _results(searched.graph)
    if not results or any(node.op == "placeholder" for node in results):
        raise ValueError(
            "fx.replace_pattern(pattern): must return the results of calls, but returns an argument "
            "or no result"
        )
    if unused := [node.name for node in arguments if not node.users]:
        raise ValueError(f"fx.replace_pattern(pattern): does not use its argument '{unused[0]}'")
    if len(_arguments(made.graph)) != len(arguments) or len(_results(made.graph)) != len(results):
        raise ValueError(
            f"fx.replace_pattern(replacement): must have {len(arguments)} arguments and {len(results)} results like the"
            f" pattern, got {len(_arguments(made.graph))} and {len(_results(made.graph))}"
        )
    matches: list[Match] = []
    taken: set[Node] = set()
    for anchor in gm.graph.nodes:
        nodes = _match(searched, gm, results, anchor)
        inner = {node for own, node in nodes.items() if own.op != "placeholder"}
        if inner and not inner & taken and _is_closed(nodes, results):
            taken |= inner
            matches.append(Match(anchor, nodes))
    # The arguments of a later match may be results of an earlier one, which have been replaced.
    now: dict[Node, Node] = {}
    for match in matches:
        _replace(gm, match.nodes_map, arguments, results, made, now)
    for node in made.graph.nodes:
        if node.op in ("call_module", "get_attr") and not _has(gm, str(node.target)):
            _copy_attr(made, gm, str(node.target))
    gm.graph.lint()
    gm.recompile()
    return matches


def _traced(given: Callable[..., Any] | GraphModule) -> GraphModule:
    made: GraphModule = given if isinstance(given, GraphModule) else symbolic_trace(given)
    return made


def _arguments(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def _results(graph: Graph) -> list[Node]:
    return graph.output_node().all_input_nodes


def _match(pattern: GraphModule, gm: GraphModule, results: list[Node], anchor: Node) -> dict[Node, Node]:
    """Return the nodes of the match in which the last result is `anchor`, or an empty dict if there is none."""
    for chosen in _choices(results[:-1], gm):
        found: dict[Node, Node] = {}
        if all(
            _same(pattern, gm, own, node, found)
            for own, node in zip([results[-1], *results[:-1]], [anchor, *chosen], strict=True)
        ):
            return found
    return {}


def _choices(results: list[Node], gm: GraphModule) -> Any:
    """Yield lists of nodes of the graph that may match these results of a pattern, one node for each result."""
    if not results:
        yield []
        return
    for node in gm.graph.nodes:
        if node.op == results[0].op:
            for others in _choices(results[1:], gm):
                yield [node, *others]


def _same(pattern: GraphModule, gm: GraphModule, own: Any, value: Any, found: dict[Node, Node]) -> bool:
    """Return whether `value`, from the graph, matches `own`, from the pattern, and add the matched nodes to `found`."""
    if not isinstance(own, Node):
        if isinstance(own, (tuple, list)):
            return (
                isinstance(value, (tuple, list))
                and len(own) == len(value)
                and all(_same(pattern, gm, a, b, found) for a, b in zip(own, value, strict=True))
            )
        if isinstance(own, dict):
            return (
                isinstance(value, dict)
                and own.keys() == value.keys()
                and all(_same(pattern, gm, own[key], value[key], found) for key in own)
            )
        if isinstance(own, slice):
            return isinstance(value, slice) and _same(
                pattern, gm, (own.start, own.stop, own.step), (value.start, value.stop, value.step), found
            )
        return type(own) is type(value) and bool(own == value)
    if not isinstance(value, Node):
        return False
    if own in found or value in found.values():
        return found.get(own) is value
    if own.op != "placeholder":
        if own.op != value.op or not _same_target(pattern, gm, own, value):
            return False
        if not _same(pattern, gm, (own.args, own.kwargs), (value.args, value.kwargs), found):
            return False
    found[own] = value
    return True


def _same_target(pattern: GraphModule, gm: GraphModule, own: Node, node: Node) -> bool:
    if own.op != "get_attr" or own.target == node.target:
        return own.target == node.target
    # As in PyTorch, any tensor matches a tensor of the pattern.
    return isinstance(_find(pattern, own), Tensor) and isinstance(_find(gm, node), Tensor)


def _find(module: Any, node: Node) -> Any:
    for part in str(node.target).split("."):
        module = getattr(module, part)
    return module


def _has(module: Module, path: str) -> bool:
    value: Any = module
    for part in path.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _is_closed(nodes: dict[Node, Node], results: list[Node]) -> bool:
    """Return whether only nodes of the match use its intermediate values: all but results, arguments and attributes."""
    inside = {node for own, node in nodes.items() if own.op != "placeholder"}
    return all(
        user in inside
        for own, node in nodes.items()
        if own not in results and own.op not in ("placeholder", "get_attr")
        for user in node.users
    )


def _replace(
    gm: GraphModule,
    nodes: dict[Node, Node],
    arguments: list[Node],
    results: list[Node],
    made: GraphModule,
    now: dict[Node, Node],
) -> None:
    values = {
        own: now.get(nodes[argument], nodes[argument])
        for own, argument in zip(_arguments(made.graph), arguments, strict=True)
    }
    inside = {node for own, node in nodes.items() if own.op != "placeholder"}
    ordered = [node for node in gm.graph.nodes if node in inside]
    with gm.graph.inserting_before(ordered[-1]):
        gm.graph.graph_copy(made.graph, values)
    for own, result in zip(results, _results(made.graph), strict=True):
        now[nodes[own]] = values[result]
        nodes[own].replace_all_uses_with(values[result], lambda user: user not in inside)
    for node in reversed(ordered):
        if not node.users:
            gm.graph.erase_node(node)
