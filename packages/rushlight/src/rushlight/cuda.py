"""What programs ask before they choose a device. GPUs come with a backend of their own, which core finds if installed."""

from __future__ import annotations

import rushlight_core as core

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """Whether tensors can be made on a GPU: a backend is installed, and finds one."""
    return _has(0)


def device_count() -> int:
    """How many GPUs there are; 0 where no backend is installed."""
    count = 0
    while _has(count):
        count += 1
    return count


def _has(index: int) -> bool:
    try:
        core.empty(0, device=core.device("cuda", index))
    except RuntimeError:
        return False
    return True


def manual_seed(seed: int) -> None:
    """Seeds the random numbers of the GPU. There is one stream for all devices, so it seeds the CPU's too."""
    if is_available():
        core.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the random numbers of all GPUs; see `manual_seed`."""
    manual_seed(seed)


def empty_cache() -> None:
    """Gives unused memory of GPUs back to the driver. Does nothing where there is no GPU."""
    if is_available():
        core.empty_cache()
