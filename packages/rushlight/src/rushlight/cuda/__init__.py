"""Information about GPUs, and functions that control them. To use GPUs, install the separate package rushlight-cuda. Without
a GPU, functions such as `is_available` report that there is no GPU, and other functions raise RuntimeError.
"""

from __future__ import annotations

import rushlight_core as core

from ._devices import (
    _need,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)
from .graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
)
from .memory import (
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    ipc_collect,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

TYPE_CHECKING = False  # cuda.amp is loaded when it is first used
if TYPE_CHECKING:
    from rushlight.cuda import amp as amp

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any

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
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
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

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


class _KindOfTensor:
    """A legacy type of tensors on a GPU, such as `cuda.FloatTensor`. Without a GPU, no tensor has this type."""

    def __init__(self, dtype: core.dtype) -> None:
        self.dtype = dtype

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, core.Tensor) and instance.is_cuda and instance.dtype == self.dtype

    def __call__(self, *args: Any) -> core.Tensor:
        _need("FloatTensor and the other types")
        return core.empty(0, dtype=self.dtype, device="cuda").new(*args)
