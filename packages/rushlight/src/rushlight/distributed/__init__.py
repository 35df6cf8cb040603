"""Processes that compute together: not available, which is what programs ask first.

The names that programs import are there, so that what is written for one process or many runs as one: questions are
answered, and what needs a group of processes raises RuntimeError. For several processes on one machine see
`rushlight.multiprocessing`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

from rushlight.distributed._absent import HINT as _HINT
from rushlight.distributed._absent import Absent as _Absent

__all__ = ["is_available", "is_initialized", "is_torchelastic_launched"]

# What programs call in a group of processes.
_ORDERS = frozenset((
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_object",
    "get_backend", "get_global_rank", "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv",
    "isend", "monitored_barrier", "new_group", "new_subgroups", "recv", "recv_object_list", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list",
))  # fmt: skip


def is_available() -> bool:
    """Whether there are process groups: no."""
    return False


def is_initialized() -> bool:
    """Whether this process is in one: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher of process groups started this process: no, none is known."""
    return False


def _is_there() -> bool:
    return False


is_mpi_available: Callable[[], bool] = _is_there
is_nccl_available: Callable[[], bool] = _is_there
is_gloo_available: Callable[[], bool] = _is_there
is_ucc_available: Callable[[], bool] = _is_there
is_xccl_available: Callable[[], bool] = _is_there


class ReduceOp(Enum):
    """How values of several processes become one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
    PREMUL_SUM = "premul_sum"


class ProcessGroup(_Absent):
    """A group of processes: none can be made."""


class Work(_Absent):
    """What a group is doing: nothing."""


class Store(_Absent):
    """What a group shares: none can be made."""


class P2POp(_Absent):
    """A message to another process: none can be made."""


class group:  # noqa: N801
    """The group of all processes: there is none."""

    WORLD: ProcessGroup | None = None


class GroupMember:
    """What stands for the group of all processes, and for none."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: object = None


class Backend(str):
    """The name of what carries messages between processes."""

    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"
    UCC = "ucc"
    UNDEFINED = "undefined"
    XCCL = "xccl"


def _refuse(name: str) -> Callable[..., NoReturn]:
    def order(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"distributed.{name}(): there are no process groups\n{_HINT}")

    order.__name__ = order.__qualname__ = name
    order.__doc__ = "Raises RuntimeError: there are no process groups."
    return order


def __getattr__(name: str) -> Any:
    if name in ("device_mesh", "fsdp", "nn", "optim", "rpc", "tensor"):
        from importlib import import_module

        return import_module(f"rushlight.distributed.{name}")
    if name in _ORDERS:
        made = globals()[name] = _refuse(name)
        return made
    raise AttributeError(
        f"module 'rushlight.distributed' has no attribute {name!r}: there are no process groups\n{_HINT}"
    )
