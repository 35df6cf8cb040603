"""Graphs: sequences of device operations that are recorded once and replayed with one call."""

from __future__ import annotations

from . import _C
from ._C import device as _device
from ._streams import Stream, _of, current_stream

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .devices import DeviceLike

__all__ = ["Capture", "Graph", "new_graph_pool"]

_MODES = ("global", "thread_local", "relaxed")


class Graph:
    """A sequence of device operations that is recorded once and can be replayed with one call.

    Every replay reads and writes the same memory addresses as the recording. Copy new inputs into the recorded input tensors
    with `copy_`, replay the graph, and read the results from the tensors that were computed during the capture. Each replay
    draws different random numbers. Calls that wait for the device (`item`, `nonzero`, copies to the host) cannot be recorded
    and raise RuntimeError. The memory of the recorded operations is not freed while the graph exists.

    Args:
        device: the device whose operations are recorded; by default the current device of the attached backend.

    Raises:
        NotImplementedError: the backend cannot record graphs, or uses its own allocator.

    Example::

        graph = Graph("cuda")
        with Capture(graph):
            y = model(x)
        x.copy_(batch)
        graph.replay()
    """

    def __init__(self, device: DeviceLike | None = None) -> None:
        self.device: _device = _of(device)
        if self.device.type == "cpu":
            raise NotImplementedError("Graph(device): graphs cannot be recorded on the CPU")
        self._graph: Any = _C._new_graph(self.device)

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global") -> None:
        """Start recording the operations of the current stream, which must not be the default stream.

        Args:
            pool: the memory pool that this graph shares with other graphs; `Graph.pool()` of one of these graphs returns it,
                and `new_graph_pool()` returns a new pool. Graphs that share a pool must not be replayed at the same time.
            capture_error_mode: "global", "thread_local" or "relaxed". In every mode, a call that cannot be recorded raises
                an error.
        """
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"capture_begin(capture_error_mode): must be one of {_MODES}, got {capture_error_mode!r}"
            )
        number = 0 if pool is None else _number(pool)
        _C._begin_capture(self._graph, current_stream(self.device).stream_id, number)

    def capture_end(self) -> None:
        """End the recording."""
        _C._end_capture(self._graph)

    def replay(self) -> None:
        """Enqueue the recorded operations on the current stream."""
        _C._replay(self._graph)

    def reset(self) -> None:
        """Discard the recorded operations, and release their memory."""
        _C._reset_graph(self._graph)

    def pool(self) -> tuple[int, int]:
        """Return the graph's memory pool, for `capture_begin` of another graph. Raises RuntimeError before a capture."""
        return (0, _C._graph_pool(self._graph))


class Capture:
    """A context manager that records the device operations of its block in a graph, on a separate stream.

    If the block raises an exception, the recording ends and the graph remains empty.

    Args:
        cuda_graph: the graph that records the operations.
        pool: the memory pool that the graph shares with other graphs; see `Graph.capture_begin`.
        stream: the stream to record; by default a stream that all captures on the device use, so that graphs with the same
            pool share memory.
        capture_error_mode: "global", "thread_local" or "relaxed".

    Raises:
        ValueError: `capture_error_mode` is not one of the three modes.
        TypeError: `pool` is not a result of `Graph.pool` or `new_graph_pool`.
        RuntimeError: an operator in the block waits for the device.

    Example::

        graph = Graph("cuda")
        x = torch.zeros(3, device="cuda")
        with Capture(graph):
            y = x + 1
        x.fill_(2)
        graph.replay()  # y is 3 now
    """

    _streams: ClassVar[dict[_device, Stream]] = {}

    def __init__(
        self,
        cuda_graph: Graph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph = cuda_graph
        self._pool = pool
        self._mode = capture_error_mode
        device = cuda_graph.device
        if stream is None and device not in self._streams:
            self._streams[device] = Stream(device)
        self._stream = self._streams[device] if stream is None else stream

    def __enter__(self) -> None:
        device = self._graph.device
        _C._synchronize(device)
        _C._empty_cache(device)
        self._stream.__enter__()
        try:
            self._graph.capture_begin(self._pool, self._mode)
        except BaseException:
            self._stream.__exit__()
            raise

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        try:
            if kind is None:
                self._graph.capture_end()
            else:
                _C._abandon_capture(self._graph._graph)
        finally:
            self._stream.__exit__()


def new_graph_pool() -> tuple[int, int]:
    """Return a new memory pool, which several graphs can share.

    Example::

        pool = new_graph_pool()
        for graph in (first, second):
            with Capture(graph, pool=pool):
                run()
    """
    return (0, _C._new_graph_pool())


def _number(pool: object) -> int:
    if not (isinstance(pool, tuple) and len(pool) == 2 and isinstance(pool[1], int)):
        raise TypeError(
            f"capture_begin(pool): must be the result of pool() or new_graph_pool(), not {type(pool).__name__}"
        )
    return pool[1]
