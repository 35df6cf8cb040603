"""Communication between processes on one machine, implemented in rushlight_multiprocessing.distributed.

Only process groups on one machine are supported. For the other parts of `torch.distributed`, the submodules contain
placeholder classes for `isinstance`; creating an instance raises RuntimeError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_multiprocessing.distributed as _package
from rushlight.distributed._absent import HINT as _HINT
from rushlight_multiprocessing.distributed import *  # noqa: F403
from rushlight_multiprocessing.distributed.group import DEFAULT_TIMEOUT as default_pg_timeout  # noqa: N811
from rushlight_nn.layers.buckets import GradBucket

__all__ = [
    *_package.__all__,
    "GradBucket",
    "default_pg_timeout",
    "is_gloo_available",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
]


def is_torchelastic_launched() -> bool:
    """Return whether `torchrun` started this process.

    Example:
        >>> torch.distributed.is_torchelastic_launched()
        False
    """
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ


def _is_there() -> bool:
    """Return False: this backend is not available."""
    return False


is_mpi_available: Callable[[], bool] = _is_there
is_nccl_available: Callable[[], bool] = _is_there
is_gloo_available: Callable[[], bool] = _is_there
is_ucc_available: Callable[[], bool] = _is_there
is_xccl_available: Callable[[], bool] = _is_there


def __getattr__(name: str) -> Any:
    if name in (
        "algorithms",
        "checkpoint",
        "constants",
        "device_mesh",
        "distributed_c10d",
        "fsdp",
        "nn",
        "optim",
        "rpc",
        "tensor",
    ):
        from importlib import import_module

        return import_module(f"rushlight.distributed.{name}")
    raise AttributeError(f"module 'rushlight.distributed' has no attribute {name!r}\n{_HINT}")
