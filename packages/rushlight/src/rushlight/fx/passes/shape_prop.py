"""Run a graph and store the shape and dtype of each result in its node."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight as torch
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The properties of a tensor that ShapeProp stores.

    Example:
        >>> TensorMetadata(torch.Size([2]), torch.float32, False, (1,), torch.contiguous_format, False, {}).shape
        torch.Size([2])
    """

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    #: The first of contiguous_format, channels_last and channels_last_3d in which the tensor is contiguous, or None.
    memory_format: torch.memory_format | None
    #: Always False.
    is_quantized: bool
    #: Always empty.
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: torch.Tensor, include_contiguity: bool = True) -> TensorMetadata:
    strided = result.layout is torch.strided
    formats = [torch.contiguous_format]
    formats += [torch.channels_last] * (result.dim() == 4) + [torch.channels_last_3d] * (result.dim() == 5)
    found = (kind for kind in formats if strided and result.is_contiguous(memory_format=kind))
    return TensorMetadata(
        result.shape,
        result.dtype,
        result.requires_grad,
        tuple(result.stride()) if strided else (),
        next(found, None) if include_contiguity else None,
        False,
        {},
    )


class ShapeProp(Interpreter):
    """Runs a graph with example inputs and stores the properties of the results in the nodes.

    `node.meta["tensor_meta"]` is a TensorMetadata, or a container of them, if the result is or contains a tensor.
    `node.meta["type"]` is the class of the result.

    Args:
        gm: the module to run.
        fake_mode: must be None.

    Raises:
        NotImplementedError: `fake_mode` is not None.

    If the call of a node raises an error, `propagate` raises RuntimeError with a message that names the node.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x.sum(1))
        >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(2, 3))
        >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
        [torch.Size([2, 3]), torch.Size([2]), torch.Size([2])]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        if fake_mode is not None:
            raise NotImplementedError("fx.ShapeProp(fake_mode): must be None")
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """Run a node and store the properties of its result."""
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def properties(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, torch.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, properties)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with example inputs and return its result."""
        return self.run(*args)
