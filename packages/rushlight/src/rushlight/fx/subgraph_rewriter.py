"""Replace the parts of a graph that match a pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _copy_attr
from rushlight.fx.node import Node, map_arg
from rushlight.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from rushlight_nn import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A part of a graph that matched a pattern.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> (match,) = torch.fx.replace_pattern(traced, lambda x: x.relu(), lambda x: x.tanh())
        >>> match.anchor.name, [node.name for node in match.nodes_map.values()]
        ('relu', ['x', 'relu'])
    """

    #: The node of the graph that matched the last result of the pattern.
    anchor: Node
    #: The node of the graph for each node of the pattern. An argument of the pattern may map to a value that is not a node.
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A part of a graph that was replaced.

    Attributes:
        anchor: the node of the graph that matched the last result of the pattern.
        nodes_map: a dict from each node of the pattern to the matching node of the graph.
        replacements: the nodes that were added to the graph.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.relu() + 1)
        >>> replace = torch.fx.subgraph_rewriter.replace_pattern_with_filters
        >>> (replaced,) = replace(traced, lambda x: x.relu(), lambda x: x.tanh().exp())
        >>> replaced.replacements
        [tanh, exp]
    """

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Find the parts of a graph that make the same calls as `pattern`, and replace them by the calls of `replacement`.

    An argument of the pattern matches any node, number or other value, and different arguments match
    different nodes. A part is not replaced if nodes outside the part use an intermediate result of the part,
    or if a result of the part is used before an argument of the part is computed. If two matches overlap,
    only the match whose calls come first is replaced.

    Args:
        gm: the module whose graph is changed. The module is recompiled.
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
    replaced = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(found.anchor, found.nodes_map) for found in replaced]


Pattern = Callable[..., Any] | Graph | GraphModule


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace the parts of a graph that match a pattern and pass filters. See `replace_pattern`.

    Args:
        gm: the module whose graph is changed. The module is recompiled.
        pattern: a function, which is traced, a traced module or a graph.
        replacement: a function, a traced module or a graph. It is not used if `replacement_callback` is given.
        match_filters: functions that receive a match, the graph of `gm` and the graph of the pattern. A match is replaced
            only if all of them return True. Of matches that overlap, the filters receive only the first.
        ignore_literals: whether a constant in the pattern, such as a number or a string, matches any
            constant.
        replacement_callback: a function with the same arguments, which returns the graph that replaces the match.
        node_name_match: if not empty, a result of the pattern also matches any call whose node has a name
            that contains this string.

    Raises:
        ValueError: `pattern` returns anything other than results of calls, or does not use an argument, or a replacement has
            another number of arguments or results.
        TypeError: neither `replacement` nor `replacement_callback` is given.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.relu() + 1 + x.sin().relu())
        >>> of_argument = lambda match, graph, pattern: match.placeholder_nodes[0].op == "placeholder"
        >>> replace = torch.fx.subgraph_rewriter.replace_pattern_with_filters
        >>> len(replace(traced, lambda a: a.relu(), lambda a: a.tanh(), [of_argument]))
        1
    """
    if replacement is None and replacement_callback is None:
        raise TypeError("fx.replace_pattern_with_filters(): needs replacement or replacement_callback")
    searched, common = _graph(pattern), None if replacement is None else _graph(replacement)
    matcher = SubgraphMatcher(searched, ignore_literals=ignore_literals)
    if replacement_callback is None and common is not None:
        _check(common, searched)
    matches = [
        match
        for match in matcher.match(gm.graph, node_name_match)
        if all(passes(match, gm.graph, searched) for passes in match_filters or ())
    ]
    replaced: list[ReplacedPatterns] = []
    # The arguments of a later match may be results of an earlier one, which have been replaced.
    now: dict[Node, Any] = {}
    for match in matches:
        made = common if replacement_callback is None else replacement_callback(match, gm.graph, searched)
        assert made is not None
        _check(made, searched)
        added = _replace(gm.graph, match, matcher, made, now)
        if added is None:
            continue
        replaced.append(ReplacedPatterns(match.returning_nodes[-1], match.nodes_map, added))
        for node in made.nodes:
            if node.op in ("call_module", "get_attr") and not _has(gm, str(node.target)):
                if not _has(made.owning_module, str(node.target)):
                    raise RuntimeError(
                        f"fx.replace_pattern(replacement): uses '{node.target}', which exists neither in gm "
                        "nor in replacement"
                    )
                _copy_attr(made.owning_module, gm, str(node.target))
    gm.graph.lint()
    gm.recompile()
    return replaced


def _graph(given: Pattern) -> Graph:
    if isinstance(given, Graph):
        return given
    made = given if isinstance(given, GraphModule) else symbolic_trace(given)
    graph: Graph = made.graph
    return graph


def _check(made: Graph, pattern: Graph) -> None:
    sizes = [
        (len(graph.find_nodes(op="placeholder")), len(graph.output_node().all_input_nodes))
        for graph in (pattern, made)
    ]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"fx.replace_pattern(replacement): must have {sizes[0][0]} arguments and {sizes[0][1]} results like the"
            f" pattern, got {sizes[1][0]} and {sizes[1][1]}"
        )


def _has(module: Module | None, path: str) -> bool:
    value: Any = module
    for part in path.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _replace(
    graph: Graph, match: InternalMatch, matcher: SubgraphMatcher, made: Graph, now: dict[Node, Any]
) -> list[Node] | None:
    """Replace the nodes of a match by copies of the nodes of `made`, and return the copies.

    Return None, and change nothing, if a result of the match is used before all of its arguments are
    computed."""
    arguments = [
        now.get(value, value) if isinstance(value, Node) else value for value in match.placeholder_nodes
    ]
    inside = {node for own, node in match.nodes_map.items() if own.op != "placeholder"}
    outside = {user for node in match.returning_nodes for user in node.users if user not in inside}
    ordered = [node for node in graph.nodes if node in inside]
    place = next(node for node in graph.nodes if node in outside or node is ordered[-1])
    if any(isinstance(value, Node) and not value < place for value in arguments):
        return None
    values: dict[Node, Any] = dict(zip(made.find_nodes(op="placeholder"), arguments, strict=True))
    before = set(graph.nodes)
    with graph.inserting_before(place):
        graph.graph_copy(made, values)
    added = [node for node in graph.nodes if node not in before]
    for node, result in zip(match.returning_nodes, made.output_node().all_input_nodes, strict=True):
        now[node] = values[result]

        def changed(used: Node, old: Node = node, new: Any = values[result]) -> Any:
            return new if used is old else used

        for user in [user for user in node.users if user not in inside]:
            user.args, user.kwargs = map_arg(user.args, changed), map_arg(user.kwargs, changed)
    for node in reversed(ordered):
        if not node.users:
            graph.erase_node(node)
    return added
