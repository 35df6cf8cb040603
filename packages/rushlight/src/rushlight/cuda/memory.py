"""Memory of GPUs: statistics, limits and the cache."""

from __future__ import annotations

import rushlight_core as core

from ._devices import _device, _is_usable, _need, device_count

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "ipc_collect",
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
    "set_per_process_memory_fraction",
]


def empty_cache() -> None:
    """Release unused cached memory of GPUs to the driver. Does nothing if there is no GPU.

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
    """Return the number of bytes that tensors occupy on a GPU, or 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> before = torch.cuda.memory_allocated()
        >>> before >= 0
        True
    """
    return _held(device, "allocated_bytes")


def max_memory_allocated(device: Any = None) -> int:
    """Return the largest number of bytes that tensors have occupied on a GPU, or 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
        True
    """
    return _held(device, "allocated_bytes_peak")


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes that are reserved for tensors on a GPU, or 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
        True
    """
    return _held(device, "reserved_bytes")


def max_memory_reserved(device: Any = None) -> int:
    """Return the largest number of bytes that were reserved for tensors on a GPU, or 0 if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
        True
    """
    return _held(device, "reserved_bytes_peak")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peak values of the memory statistics to the current values. Does nothing if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.reset_peak_memory_stats()
    """
    if _is_usable():
        core.devices.reset_peak_memory_stats(_device(device))


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return a dict with statistics of a GPU's memory under PyTorch's names. The dict is empty if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.memory_stats().get("allocated_bytes.all.peak", 0) >= 0
        True
    """
    if not _is_usable():
        return {}
    known = core.devices.memory_stats(_device(device))
    stats = {
        "num_alloc_retries": known["retry_count"],
        "num_ooms": known["failure_count"],
        "num_device_alloc": known["map_count"],
        "num_device_free": known["unmap_count"],
    }
    for name in ("allocated_bytes", "active_bytes", "reserved_bytes"):
        stats |= {f"{name}.all.current": known[name], f"{name}.all.peak": known[name + "_peak"]}
    return stats


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return the statistics of `memory_stats` as nested dicts: the dots of their names separate the levels.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> torch.cuda.memory_stats_as_nested_dict().get("num_ooms", 0)
        0
    """
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        level = nested
        for part in path:
            level = level.setdefault(part, {})
        level[last] = value
    return nested


def get_allocator_backend() -> str:
    """Return "native": the memory of GPUs comes from this library's caching allocator.

    Example:
        >>> torch.cuda.get_allocator_backend()
        'native'
    """
    return "native"


def reset_max_memory_allocated(device: Any = None) -> None:
    """Reset the peak values of the memory statistics. This is an older name of `reset_peak_memory_stats`.

    Example:
        >>> torch.cuda.reset_max_memory_allocated()
    """
    reset_peak_memory_stats(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the number of free bytes and the total number of bytes of a GPU's memory.

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
    """Return the segments of a GPU's memory and the blocks in each, or an empty list if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.

    Example:
        >>> all(segment["size"] > 0 for segment in torch.cuda.memory_snapshot())
        True
    """
    from json import loads

    return loads(core.devices.memory_snapshot(_device(device))) if _is_usable() else []


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a table with statistics of a GPU's memory, or "" if there is no GPU.

    Args:
        device: an index or a device; by default the current GPU.
        abbreviated: whether to leave out the counts of calls.

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
