"""Find the parts of a graph that match a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight_core import Tensor

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A part of a graph that matches a pattern.

    Attributes:
        anchors: the nodes of the pattern that only the output node of the pattern uses.
        nodes_map: the node of the graph for each node of the pattern. An argument of the pattern may map to a number or
            another value that is not a node.
        placeholder_nodes: the nodes or values that match the arguments of the pattern, in order.
        returning_nodes: the nodes that match the results of the pattern.
        name_node_map: empty.

    Example:
        >>> pattern = torch.fx.symbolic_trace(lambda a: a.relu()).graph
        >>> (match,) = SubgraphMatcher(pattern).match(torch.fx.symbolic_trace(lambda x: x.relu() + 1).graph)
        >>> match.placeholder_nodes, match.returning_nodes
        ([x], [relu])
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds the parts of graphs that make the same calls as a pattern.

    An argument of the pattern matches any node or value, and different arguments match different nodes. All nodes of a
    match, except its arguments and its results, are used only inside the match.

    Args:
        pattern: the graph to find. It must use all its arguments, and return results of calls.
        match_output, match_placeholder: must be False.
        remove_overlapping_matches: whether only the first of several matches that share a call is returned.
        ignore_literals: whether a number, string or other value of the pattern that is not a node matches any
            value that is not a node.

    Raises:
        NotImplementedError: `match_output` or `match_placeholder` is true.
        ValueError: the pattern returns anything other than results of calls, or does not use an argument.

    Example:
        >>> pattern = torch.fx.symbolic_trace(lambda a: a + 2).graph
        >>> graph = torch.fx.symbolic_trace(lambda x: (x + 2) * (x + 3)).graph
        >>> len(SubgraphMatcher(pattern).match(graph))
        1
        >>> len(SubgraphMatcher(pattern, ignore_literals=True).match(graph))
        2
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if match_output or match_placeholder:
            raise NotImplementedError("fx.SubgraphMatcher(match_output, match_placeholder): must be False")
        self.pattern = pattern
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self.pattern_placeholder_nodes: list[Node] = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes: list[Node] = pattern.output_node().all_input_nodes
        results = self.pattern_returning_nodes
        if not results or any(node.op == "placeholder" for node in results):
            raise ValueError(
                "fx.replace_pattern(pattern): must return the results of calls, but returns an argument or no result"
            )
        if unused := [node.name for node in self.pattern_placeholder_nodes if not node.users]:
            raise ValueError(f"fx.replace_pattern(pattern): does not use its argument '{unused[0]}'")
        self.pattern_anchors: list[Node] = [node for node in results if len(node.users) == 1]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the matches in the order of their last results.

        With a `node_name_match`, a node whose name contains `node_name_match` matches a result of the pattern
        even if the node calls another operation. Its arguments must still match.
        """
        matches: list[InternalMatch] = []
        taken: set[Node] = set()
        for anchor in graph.nodes:
            found = self._match_at(graph, anchor, node_name_match)
            inside = {node for own, node in found.items() if own.op != "placeholder"}
            overlaps = self.remove_overlapping_matches and inside & taken
            if not inside or overlaps or not self._is_closed(found, inside):
                continue
            taken |= inside
            matches.append(
                InternalMatch(
                    list(self.pattern_anchors),
                    found,
                    [found[node] for node in self.pattern_placeholder_nodes],
                    [found[node] for node in self.pattern_returning_nodes],
                )
            )
        return matches

    def _match_at(self, graph: Graph, anchor: Node, name: str) -> dict[Node, Any]:
        """Return the match whose last result is `anchor`, as a dict from pattern nodes to graph nodes.

        The dict is empty if there is no such match.
        """
        results = self.pattern_returning_nodes
        for chosen in self._choices(results[:-1], graph, name):
            found: dict[Node, Any] = {}
            if all(
                self._same(own, node, found, graph, name)
                for own, node in zip([results[-1], *results[:-1]], [anchor, *chosen], strict=True)
            ):
                return found
        return {}

    def _choices(self, results: list[Node], graph: Graph, name: str) -> Iterator[list[Node]]:
        """Yield lists of nodes of the graph that may match these results of the pattern, one node for each result."""
        if not results:
            yield []
            return
        for node in graph.nodes:
            if node.op == results[0].op or (name and name in node.name):
                for others in self._choices(results[1:], graph, name):
                    yield [node, *others]

    def _same(self, own: Any, value: Any, found: dict[Node, Any], graph: Graph, name: str = "") -> bool:
        """Return whether a value of the graph matches the pattern's value `own`, and add the matched nodes to `found`."""
        if isinstance(own, Node):
            return self._same_node(own, value, found, graph, name)
        if isinstance(own, (tuple, list)) and isinstance(value, (tuple, list)):
            return len(own) == len(value) and all(
                self._same(a, b, found, graph) for a, b in zip(own, value, strict=True)
            )
        if isinstance(own, dict) and isinstance(value, dict):
            return own.keys() == value.keys() and all(
                self._same(own[key], value[key], found, graph) for key in own
            )
        if isinstance(own, slice) and isinstance(value, slice):
            parts, others = (own.start, own.stop, own.step), (value.start, value.stop, value.step)
            return self._same(parts, others, found, graph)
        if isinstance(value, Node):
            return False
        return self.ignore_literals or (type(own) is type(value) and bool(own == value))

    def _same_node(self, own: Node, value: Any, found: dict[Node, Any], graph: Graph, name: str) -> bool:
        if own in found:
            known = found[own]
            if isinstance(known, Node) or isinstance(value, Node):
                return known is value
            return type(known) is type(value) and bool(known == value)
        if not isinstance(value, Node):
            if own.op != "placeholder":
                return False
            found[own] = value
            return True
        if any(value is known for known in found.values()):
            return False
        if own.op != "placeholder":
            named = bool(name) and name in value.name and value.op not in ("placeholder", "output")
            if not named and not (own.op == value.op and _same_target(own, value, self.pattern, graph)):
                return False
            if not self._same((own.args, own.kwargs), (value.args, value.kwargs), found, graph):
                return False
        found[own] = value
        return True

    def _is_closed(self, found: dict[Node, Any], inside: set[Node]) -> bool:
        """Return whether the nodes of a match are used only inside the match.

        Nodes that match arguments, results or attributes of the pattern may also be used outside the match.
        """
        return all(
            user in inside
            for own, node in found.items()
            if own not in self.pattern_returning_nodes and own.op not in ("placeholder", "get_attr")
            for user in node.users
        )


def _same_target(own: Node, node: Node, pattern: Graph, graph: Graph) -> bool:
    if own.op != "get_attr" or own.target == node.target:
        return own.target == node.target
    # As in PyTorch, any tensor matches a tensor of the pattern.
    return isinstance(_find(pattern, own), Tensor) and isinstance(_find(graph, node), Tensor)


def _find(graph: Graph, node: Node) -> Any:
    value: Any = graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part, None)
    return value
