"""Base class of passes over a GraphModule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The result of a pass.

    Example:
        >>> PassResult(torch.fx.symbolic_trace(lambda x: x + 1), False).modified
        False
    """

    #: The module after the pass.
    graph_module: GraphModule
    #: Whether the pass changed the module.
    modified: bool


class PassBase(ABC):
    """A pass over a GraphModule. Subclasses define `call`, and may define the checks `requires` and `ensures`.

    Example:
        >>> class DeadCode(PassBase):
        ...     def call(self, graph_module):
        ...         modified = graph_module.graph.eliminate_dead_code()
        ...         graph_module.recompile()
        ...         return PassResult(graph_module, modified)
        >>> DeadCode()(torch.fx.symbolic_trace(lambda x: (x + 1, x * 2)[0])).modified
        True
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Call `requires`, `call` and `ensures`, and return the result of `call`."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Run the pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the module before the pass. Subclasses raise an error if `graph_module` does not meet a requirement."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the module after the pass."""
