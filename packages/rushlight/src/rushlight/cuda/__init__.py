"""Queries about GPUs, and functions that control them. GPUs need a separate package, which core finds if it is
installed. Without a GPU, queries return that there is none, and other functions raise RuntimeError.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import rushlight_core as core
from rushlight_core import _graphs, _streams

TYPE_CHECKING = False  # cuda.amp is loaded when it is first used
if TYPE_CHECKING:
    from rushlight.cuda import amp as amp

__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "get_per_process_memory_fraction",
]

OutOfMemoryError = core.OutOfMemoryError

_KINDS = {
    "BFloat16Tensor": "bfloat16",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "ShortTensor": "int16",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "amp":
            from importlib import import_module

            return import_module("rushlight.cuda.amp")
        if name in _KINDS:
            made = globals()[name] = _KindOfTensor(getattr(core, _KINDS[name]))
            return made
        if name == "_initialized":
            return is_initialized()
        if name == "default_generators":
            return (core._C.default_generator,) * device_count()  # all devices draw from one stream
        raise AttributeError(f"module 'rushlight.cuda' has no attribute {name!r}")


def is_available() -> bool:
    """Return whether tensors can be created on a GPU: the package for GPUs is installed and finds one.

    Example:
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
        >>> torch.zeros(2, device=device).shape
        torch.Size([2])
    """
    try:
        return _driver_is_there() and core._C._device_count("cuda") > 0
    except RuntimeError as error:
        # Programs hide all devices to run on the CPU, so this needs no warning.
        if os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1"):
            warnings.warn(f"cuda.is_available(): no GPU can be used: {error}", stacklevel=2)
        return False


def device_count() -> int:
    """Return the number of GPUs, which is 0 without the package for GPUs.

    Example:
        >>> (torch.cuda.device_count() > 0) == torch.cuda.is_available()
        True
    """
    return core._C._device_count("cuda") if _is_usable() else 0


def _is_usable() -> bool:
    return _why_not() is None


def _why_not() -> str | None:
    """Return why no GPU can be used, or None if one can be used."""
    if not _driver_is_there():
        return "this machine has no NVIDIA driver\nhint: check cuda.is_available() first"
    try:
        core.empty(0, device=core.device("cuda", 0))
    except RuntimeError as error:
        return str(error)
    return None


def _driver_is_there() -> bool:
    """Return whether GPUs are in use already, or whether the driver's library can be opened.

    This is faster than searching for packages.
    """
    from _ctypes import dlopen

    if core._C._kernels("cuda"):
        return True
    try:
        dlopen("libcuda.so.1", os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        return False
    return True


def _need(function: str) -> None:
    if (cause := _why_not()) is not None:
        raise RuntimeError(f"cuda.{function}(): no GPU is available: {cause}")


def init() -> None:
    """Initialise GPUs, which their first use does too.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.init()
    """
    _need("init")


def is_initialized() -> bool:
    """Return whether GPUs are initialised.

    Example:
        >>> torch.cuda.is_initialized() == torch.cuda.is_available()
        True
    """
    return _is_usable()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU that computes with bfloat16.

    Args:
        including_emulation: has no effect.

    Example:
        >>> torch.cuda.is_bf16_supported() == torch.cuda.is_available()
        True
    """
    return _is_usable()


def synchronize(device: Any = None) -> None:
    """Wait until a GPU has finished all work that was submitted to it.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        x = torch.ones(1000, 1000, device="cuda") @ torch.ones(1000, 1000, device="cuda")
        torch.cuda.synchronize()  # the product is computed
    """
    _need("synchronize")
    core.devices.synchronize(_device(device))


def current_device() -> int:
    """Return the index of the current GPU, which "cuda" without an index names.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.set_device(1)
        torch.cuda.current_device()  # 1
    """
    _need("current_device")
    return core.devices.current_device("cuda").index or 0


def set_device(device: Any) -> None:
    """Select the current GPU, which "cuda" without an index names.

    Args:
        device: an index or a device. A negative index changes nothing.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.set_device(0)
    """
    if isinstance(device, int) and device < 0:
        return
    _need("set_device")
    core.devices.set_device(_device(device))


def get_device_properties(device: Any = None) -> core.devices.DeviceProperties:
    """Return the name, memory and compute capability of a GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.get_device_properties(0).total_memory
    """
    _need("get_device_properties")
    return core.devices.get_device_properties(_device(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, as major and minor number.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.get_device_capability()  # (9, 0) for an H100
    """
    found = get_device_properties(device)
    return found.major, found.minor


def get_device_name(device: Any = None) -> str:
    """Return the product name of a GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.get_device_name()
    """
    return get_device_properties(device).name


def _device(device: Any) -> core.device:
    if device is None:
        return core.devices.current_device("cuda")
    return core.device("cuda", device) if isinstance(device, int) else core.device(device)


def _resolved(device: Any) -> core.device:
    where = _device(device)
    return where if where.index is not None else core.devices.current_device("cuda")


class device:  # noqa: N801
    """Context manager in which another GPU is the current one.

    Args:
        device: an index or a device. A negative index, or None, changes nothing.

    Raises:
        RuntimeError: there is no GPU.

    Example:
        >>> with torch.cuda.device(0 if torch.cuda.is_available() else None):
        ...     x = torch.ones(2)
    """

    def __init__(self, device: Any) -> None:
        self._wanted = None if device is None or (isinstance(device, int) and device < 0) else device
        self._before: int | None = None

    def __enter__(self) -> None:
        if self._wanted is not None:
            self._before = current_device()
            set_device(self._wanted)

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            set_device(self._before)


# --- random numbers ---


def manual_seed(seed: int) -> None:
    """Seed the random numbers of the GPU. All devices share one random stream, so this seeds the CPU too.

    Does nothing if there is no GPU.

    Example:
        >>> torch.cuda.manual_seed(0)
    """
    if _is_usable():
        core.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the random numbers of all GPUs; see `manual_seed`.

    Example:
        >>> torch.cuda.manual_seed_all(0)
    """
    manual_seed(seed)


def seed() -> None:
    """Seed the random numbers of the GPU from the system's entropy; see `manual_seed`.

    Example:
        >>> torch.cuda.seed()
    """
    if _is_usable():
        core.seed()


seed_all = seed


def get_rng_state(device: Any = "cuda") -> core.Tensor:
    """Return the state of random numbers, which all devices share.

    Args:
        device: has no effect.

    Shape:
        - Output: (N,), of dtype uint8.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        state = torch.cuda.get_rng_state()
        first = torch.rand(3, device="cuda")
        torch.cuda.set_rng_state(state)
        torch.equal(first, torch.rand(3, device="cuda"))  # True
    """
    _need("get_rng_state")
    return core.get_rng_state()


def set_rng_state(new_state: core.Tensor, device: Any = "cuda") -> None:
    """Restore a state that `get_rng_state` returned.

    Args:
        new_state: the state.
        device: has no effect.

    Shape:
        - `new_state`: (N,), of dtype uint8.

    Raises:
        RuntimeError: there is no GPU, or the tensor is not a state.

    Example::

        state = torch.cuda.get_rng_state()
        torch.cuda.set_rng_state(state)
    """
    _need("set_rng_state")
    core.set_rng_state(new_state)


def get_rng_state_all() -> list[core.Tensor]:
    """Return a list with a state of random numbers for each GPU, which is empty if there is none.

    Shape:
        - Outputs: (N,), of dtype uint8.

    Example:
        >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
        True
    """
    return [core.get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: Iterable[core.Tensor]) -> None:
    """Restore the states that `get_rng_state_all` returned.

    Shape:
        - `new_states`: tensors of shape (N,), of dtype uint8.

    Raises:
        RuntimeError: there are states, but no GPU.

    Example:
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for state in new_states:
        set_rng_state(state)


# --- memory ---


def empty_cache() -> None:
    """Return unused memory of GPUs to the driver. Does nothing if there is no GPU.

    Example:
        >>> torch.cuda.empty_cache()
    """
    for index in range(device_count()):
        core.devices.empty_cache(core.device("cuda", index))


def ipc_collect() -> None:
    """No-op: memory that other processes release is freed at once.

    Example:
        >>> torch.cuda.ipc_collect()
    """


def _held(device: Any, what: str) -> int:
    return core.devices.memory_stats(_device(device))[what] if _is_usable() else 0


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes of a GPU that tensors occupy; 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> before = torch.cuda.memory_allocated()
        >>> before >= 0
        True
    """
    return _held(device, "allocated_bytes")


def max_memory_allocated(device: Any = None) -> int:
    """Return the largest number of bytes of a GPU that tensors have occupied; 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
        True
    """
    return _held(device, "allocated_bytes_peak")


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes of a GPU that are reserved for tensors; 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
        True
    """
    return _held(device, "reserved_bytes")


def max_memory_reserved(device: Any = None) -> int:
    """Return the largest number of bytes of a GPU that were reserved for tensors; 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
        True
    """
    return _held(device, "reserved_bytes_peak")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the maxima of memory statistics to the current values. Does nothing if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.reset_peak_memory_stats()
    """
    if _is_usable():
        core.devices.reset_peak_memory_stats(_device(device))


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return statistics of a GPU's memory by PyTorch's names; an empty dict if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.memory_stats().get("allocated_bytes.all.peak", 0) >= 0
        True
    """
    if not _is_usable():
        return {}
    known = core.devices.memory_stats(_device(device))
    stats = {"num_alloc_retries": known["retry_count"], "num_ooms": known["failure_count"]}
    for name in ("allocated_bytes", "active_bytes", "reserved_bytes"):
        stats |= {f"{name}.all.current": known[name], f"{name}.all.peak": known[name + "_peak"]}
    return stats


def reset_max_memory_allocated(device: Any = None) -> None:
    """Reset the maxima of memory statistics; the older name of `reset_peak_memory_stats`.

    Example:
        >>> torch.cuda.reset_max_memory_allocated()
    """
    reset_peak_memory_stats(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the number of free bytes of a GPU, and the number of all its bytes.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        free, total = torch.cuda.mem_get_info()
    """
    _need("mem_get_info")
    return core.devices.mem_get_info(_device(device))


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit the fraction of a GPU's memory that this process may use.

    Args:
        fraction: the fraction, between 0 and 1.
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.
        TypeError: the fraction is not a float.
        ValueError: the fraction is not between 0 and 1.

    Example::

        torch.cuda.set_per_process_memory_fraction(0.5)
    """
    _need("set_per_process_memory_fraction")
    if not isinstance(fraction, float):
        raise TypeError(
            f"set_per_process_memory_fraction(fraction): must be a float, not {type(fraction).__name__}"
        )
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"set_per_process_memory_fraction(fraction): must be between 0 and 1, got {fraction}"
        )
    total = mem_get_info(device)[1]
    # A limit of 0 means no limit.
    core.devices.set_memory_limit(_device(device), max(1, int(total * fraction)) if fraction < 1 else 0)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the fraction of a GPU's memory that this process may use, which is 1.0 by default.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.set_per_process_memory_fraction(0.5)
        torch.cuda.get_per_process_memory_fraction()  # 0.5
    """
    _need("get_per_process_memory_fraction")
    limit = core.devices.memory_stats(_device(device))["limit_bytes"]
    return min(1.0, limit / mem_get_info(device)[1])


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """Return the segments of a GPU's memory, and the blocks in each; an empty list if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> all(segment["size"] > 0 for segment in torch.cuda.memory_snapshot())
        True
    """
    from json import loads

    return loads(core.devices.memory_snapshot(_device(device))) if _is_usable() else []


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return statistics of a GPU's memory as a table; "" if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.
        abbreviated: without the counts of calls.

    Example:
        >>> isinstance(torch.cuda.memory_summary(abbreviated=True), str)
        True
    """
    if not _is_usable():
        return ""
    where = _device(device)
    known = core.devices.memory_stats(where)
    lines = [f"Memory of {where}", f"{'':12}{'now':>12}{'peak':>12}"]
    lines += [
        f"{name:12}{known[name + '_bytes'] / 2**20:8.1f} MiB{known[name + '_bytes_peak'] / 2**20:8.1f} MiB"
        for name in ("allocated", "active", "reserved")
    ]
    if not abbreviated:
        lines += [
            f"{name + 's':12}{known[name + '_count']:12}"
            for name in ("allocation", "release", "map", "unmap", "failure")
        ]
    return "\n".join(lines) + "\n"


# --- streams ---


class Stream(core.Stream):
    """A stream: a queue of work of a GPU, whose items are executed in order.

    Args:
        device: an index or a device; by default the current GPU.
        priority: lower numbers have a higher priority.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.ones(2, device="cuda")
        torch.cuda.current_stream().wait_stream(stream)
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        _need("Stream")
        super().__init__(_device(device), priority=priority)

    @property
    def cuda_stream(self) -> int:
        """The address of the stream, as CUDA's functions take it."""
        return self.stream_id


class ExternalStream(Stream):
    """A stream that another library has made. The stream must exist as long as tensors that were used on it.

    Args:
        stream_ptr: the address of the stream.
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        with torch.cuda.stream(torch.cuda.ExternalStream(stream_ptr)):
            x = torch.ones(2, device="cuda")
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        _need("ExternalStream")
        self._assign(_resolved(device), stream_ptr)


class Event(core.Event):
    """A point in a stream of the current GPU, to wait for and to measure times.

    Args:
        enable_timing: whether `elapsed_time` may be called.
        blocking: whether threads that wait for the event sleep instead of using the processor.
        interprocess: whether other processes may wait for the event.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        x = torch.ones(1000, 1000, device="cuda") @ torch.ones(1000, 1000, device="cuda")
        end.record()
        end.synchronize()
        begin.elapsed_time(end)  # milliseconds
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        _need("Event")
        super().__init__("cuda", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


class CUDAGraph(_graphs.Graph):
    """Work of a GPU that is recorded once and replayed.

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


class graph(_graphs.Capture):  # noqa: N801
    """Context manager that records the work of its block in a graph, on a separate stream.

    Args:
        cuda_graph: a CUDAGraph.
        pool: memory to share with other graphs that are not replayed at the same time: `CUDAGraph.pool()` of one of them,
            or `graph_pool_handle()`.
        stream: the stream to record; by default one that all captures share.
        capture_error_mode: "global", "thread_local" or "relaxed". Calls that cannot be recorded raise in every mode.

    Raises:
        RuntimeError: a call in the block cannot be recorded.

    Example::

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2  # x is a tensor on the GPU
        graph.replay()
    """


def graph_pool_handle() -> tuple[int, int]:
    """Return an identifier of memory that several graphs share.

    Example:
        >>> len(torch.cuda.graph_pool_handle())
        2
    """
    return _graphs.new_graph_pool()


def current_stream(device: Any = None) -> Stream:
    """Return the stream to which the calling thread submits work.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.current_stream().synchronize()
    """
    _need("current_stream")
    found = _streams.current_stream(_device(device))
    return Stream._existing(found.device, found.stream_id)


def set_stream(stream: core.Stream | None) -> None:
    """Make the calling thread submit its work for the device of a stream to this stream.

    Args:
        stream: a stream; None changes nothing.

    Example:
        >>> torch.cuda.set_stream(None)
    """
    if stream is not None:
        _streams.set_stream(stream)


def default_stream(device: Any = None) -> Stream:
    """Return the stream that a GPU uses before another one is selected.

    Args:
        device: an index or a device; by default the current GPU.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        torch.cuda.default_stream().synchronize()
    """
    _need("default_stream")
    return Stream._existing(_resolved(device), 0)


class stream:  # noqa: N801
    """Context manager that selects the stream to which its block submits work.

    Args:
        stream: a stream; None changes nothing.

    Example:
        >>> with torch.cuda.stream(None):
        ...     x = torch.ones(2)
    """

    def __init__(self, stream: core.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


StreamContext = stream


def get_arch_list() -> list[str]:
    """Return an empty list: the GPUs that kernels were compiled for are not available from the backend.

    Example:
        >>> torch.cuda.get_arch_list()
        []
    """
    return []


class _KindOfTensor:
    """A legacy type of tensors on a GPU, such as `cuda.FloatTensor`. Without a GPU, no tensor is an instance of it."""

    def __init__(self, dtype: core.dtype) -> None:
        self.dtype = dtype

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, core.Tensor) and instance.is_cuda and instance.dtype == self.dtype

    def __call__(self, *args: Any) -> core.Tensor:
        _need("FloatTensor and the other types")
        return core.empty(0, dtype=self.dtype, device="cuda").new(*args)


def is_current_stream_capturing() -> bool:
    """Return whether a graph records the work that is submitted to the current stream.

    Example:
        >>> torch.cuda.is_current_stream_capturing()
        False
    """
    return _is_usable() and core.devices.is_current_stream_capturing("cuda")
