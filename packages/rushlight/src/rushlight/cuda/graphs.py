"""CUDA graphs: sequences of GPU operations that are recorded once and can be replayed."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import _graphs

from ._devices import _is_usable, _need

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
]


class CUDAGraph(_graphs.Graph):
    """A sequence of GPU operations that is recorded once and can be replayed.

    Args:
        keep_graph: must be False.

    Raises:
        RuntimeError: there is no GPU.
        NotImplementedError: `keep_graph` is true.

    Example::

        x = torch.ones(8, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2
        x.fill_(3.0)
        graph.replay()  # y is 6 everywhere
    """

    def __init__(self, keep_graph: bool = False) -> None:
        _need("CUDAGraph")
        if keep_graph:
            raise NotImplementedError(
                "CUDAGraph(keep_graph=True): is not supported, since a recorded graph cannot be changed"
            )
        super().__init__("cuda")

    def raw_cuda_graph_exec(self) -> int:
        """Return the address of the recorded graph (`cudaGraphExec_t`), for functions of CUDA.

        Raises:
            RuntimeError: nothing has been recorded.
        """
        return core._C._graph_handle(self._graph)

    def raw_cuda_graph(self) -> int:
        """Raise NotImplementedError: the graph that is not executable (`cudaGraph_t`) is not kept."""
        raise NotImplementedError(
            "raw_cuda_graph(): only the executable graph is kept\nhint: call raw_cuda_graph_exec()"
        )

    def instantiate(self) -> None:
        """Raise RuntimeError: `capture_end` instantiates the graph."""
        raise RuntimeError("instantiate(): capture_end() has instantiated the graph")

    def enable_debug_mode(self) -> None:
        """Raise NotImplementedError: the graph that `debug_dump` writes in PyTorch is not kept."""
        raise NotImplementedError("enable_debug_mode(): a recorded graph cannot be written to a file")

    def debug_dump(self, debug_path: str) -> None:
        """Raise NotImplementedError: the graph that this method writes in PyTorch is not kept.

        Args:
            debug_path: the file to write.
        """
        raise NotImplementedError("debug_dump(debug_path): a recorded graph cannot be written to a file")


class graph(_graphs.Capture):  # noqa: N801
    """Context manager that records the work of its block in a graph, on a separate stream.

    Args:
        cuda_graph: a CUDAGraph.
        pool: memory to share with other graphs that are not replayed at the same time: `CUDAGraph.pool()` of one of them,
            or `graph_pool_handle()`.
        stream: the stream to record; by default a stream that all captures share.
        capture_error_mode: "global", "thread_local" or "relaxed". In every mode, a call that cannot be recorded raises an
            error.

    Raises:
        RuntimeError: a call in the block cannot be recorded.

    Example::

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2  # x is a tensor on the GPU
        graph.replay()
    """


def graph_pool_handle() -> tuple[int, int]:
    """Return the identifier of a new memory pool, which several graphs can share.

    Example:
        >>> len(torch.cuda.graph_pool_handle())
        2
    """
    return _graphs.new_graph_pool()


def is_current_stream_capturing() -> bool:
    """Return whether work that is submitted to the current stream is captured in a graph.

    Example:
        >>> torch.cuda.is_current_stream_capturing()
        False
    """
    return _is_usable() and core.devices.is_current_stream_capturing("cuda")
