"""Group the nodes that a backend supports into partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.operator_support import OperatorSupportBase
from rushlight.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A group of nodes that one call can replace.

    Args:
        id: the number of the group.
        nodes: the nodes of the group.
        node_orders: a number for each node, or None.

    Example:
        >>> Partition(0, [torch.fx.Graph().placeholder("x")]).size()
        1
    """

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        given = list(nodes or ())
        orders: list[Any] = [None] * len(given) if node_orders is None else list(node_orders)
        self.nodes: dict[Node, int | None] = dict(zip(given, orders, strict=True))

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def __repr__(self) -> str:
        return str(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the supported calls of a graph, and replaces each group by a call of a submodule.

    Args:
        graph_module: the module.
        operator_support: decides which calls are supported. Groups contain only nodes that are calls.
        allows_single_node_partition: whether a group may contain only one computation.
        non_compute_ops: the names of calls, as `get_node_target` returns them, that do not count as computations.
        allowed_single_node_partition_ops: the names of calls that may be the only computation of a group
            even if `allows_single_node_partition` is False.
        skip_horizontal_fusion: whether a call joins only groups whose results it uses.

    Example:
        >>> from rushlight.fx.passes.operator_support import OperatorSupport
        >>> traced = torch.fx.symbolic_trace(lambda x: ((x + 1) * 2).relu() + 1)
        >>> support = OperatorSupport({"operator.add": None, "operator.mul": None})
        >>> print(CapabilityBasedPartitioner(traced, support).partition_and_fuse().code.strip())
        def forward(self, x):
            fused_0 = self.fused_0(x);  x = None
            relu = fused_0.relu();  fused_0 = None
            add_1 = relu + 1;  relu = None
            return add_1
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops: set[str] = set(non_compute_ops or ())
        self.allowed_single_node_partition_ops: set[str] = set(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Return the groups, in the order of their first calls. The module does not change."""
        modules = dict(self.graph_module.named_modules())
        groups: list[list[Node]] = []
        home: dict[Node, int] = {}
        # The groups of whose results a node outside of all groups makes use, and all groups that run before a group.
        needed: dict[Node, set[int]] = {}
        before: list[set[int]] = []
        for node in self.graph_module.graph.nodes:
            inner = {home[used] for used in node.all_input_nodes if used in home}
            outer = {number for used in node.all_input_nodes if used not in home for number in needed[used]}
            needed[node] = inner | outer
            if node.op not in CALLABLE_NODE_OPS or not self.operator_support.is_node_supported(modules, node):
                continue
            candidates = sorted(inner)
            if not self.skip_horizontal_fusion:
                candidates += [number for number in range(len(groups)) if number not in inner]
            for number in candidates:
                # The group cannot take the node if a node outside, or another group, must run between the two.
                if number not in outer and not any(
                    number in before[other] for other in needed[node] - {number}
                ):
                    break
            else:
                number = len(groups)
                groups.append([])
                before.append(set())
            groups[number].append(node)
            home[node] = number
            for other in needed[node] - {number}:
                before[number] |= {other} | before[other]
            for earlier in before:
                if number in earlier:
                    earlier |= before[number]
        found = [nodes for nodes in groups if self._is_kept(nodes, modules)]
        return [Partition(number, nodes) for number, nodes in enumerate(found)]

    def _is_kept(self, nodes: list[Node], modules: dict[str, Any]) -> bool:
        targets = [get_node_target(modules, node) for node in nodes]
        computing = [target for target in targets if target not in self.non_compute_ops]
        if len(computing) > 1 or self.allows_single_node_partition:
            return bool(computing)
        return any(target in self.allowed_single_node_partition_ops for target in targets)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Replace each group by a call of a submodule, whose name is `prefix` and a number. Return the module."""
        return fuse_by_partitions(self.graph_module, [partition.nodes for partition in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Call `propose_partitions` and `fuse_partitions`, and return the module."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
