"""A module in several processes that compute together: there are no process groups."""

from __future__ import annotations

from typing import Any

from rushlight_nn import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A name to ask for: no module is one, and making one raises RuntimeError."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel(): there are no process groups\n"
            "hint: torch.distributed.is_available() says so; rushlight.multiprocessing trains in several processes"
        )
