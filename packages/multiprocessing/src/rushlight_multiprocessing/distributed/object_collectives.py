"""Collectives that transfer Python objects by pickling, with PyTorch's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .collectives import Group, check_only_at_root, find_member, root_of

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "scatter_object_list",
]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Copy the list of objects of one rank to all other ranks. Objects are pickled.

    Arguments:
        object_list: on the source, the objects to send; on every other rank, a list whose contents are replaced.
        src: the source's rank in the group of all processes; or pass `group_src`, the source's rank in
            `group`.
        device: must be None or the CPU.
        group: a group; None selects the group of all processes.

    If an object cannot be pickled, the source raises the error of `pickle`, and every other rank raises RuntimeError.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> objects = [{"epoch": 3}]
        >>> dist.broadcast_object_list(objects, src=0)
        >>> dist.destroy_process_group()
    """
    on_cpu(device, "broadcast_object_list")
    if (member := find_member(group, "broadcast_object_list")) is None:
        return
    root = root_of(group, member, src, group_src, "src")
    received = member.broadcast_object(list(object_list), root, f"broadcast_object_list[{len(object_list)}]")
    if member.rank() != root:
        object_list[:] = received


def on_cpu(device: Any, function: str) -> None:
    """Raise ValueError if the device is not the CPU."""
    if device is not None and str(device) != "cpu":
        raise ValueError(f"{function}(device): must be None or the CPU for the backend shm, got {device}")


def all_gather_object(object_list: list[Any], obj: Any, group: Group = None) -> None:
    """Gather the objects of all ranks in a list. Objects are pickled.

    Arguments:
        object_list: a list with one element for each rank; element i is replaced by the object of rank i.
        obj: the object of this rank.
        group: a group; None selects the group of all processes.

    Raises ValueError if the list does not have one element for each rank.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> objects = [None] * dist.get_world_size()
        >>> dist.all_gather_object(objects, {"loss": 0.5})
        >>> objects
        [{'loss': 0.5}]
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "all_gather_object")) is None:
        return
    if len(object_list) != member.size():
        raise ValueError(
            f"all_gather_object(object_list): must have {member.size()} elements, got {len(object_list)}"
        )
    object_list[:] = member.gather_objects(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Group = None,
    group_dst: int | None = None,
) -> None:
    """Gather the objects of all ranks in a list on one rank. The other ranks pass no list. Objects are pickled.

    Arguments:
        obj: the object of this rank.
        object_gather_list: on rank `dst`, a list with one element for each rank; element i is replaced by the object of
            rank i.
        dst: the destination's rank in the group of all processes; or pass `group_dst`, the destination's rank
            in `group`.
        group: a group; None selects the group of all processes.

    Raises ValueError if the list does not have one element for each rank.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> objects = [None] * dist.get_world_size()
        >>> dist.gather_object({"loss": 0.5}, objects, dst=0)
        >>> objects
        [{'loss': 0.5}]
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "gather_object")) is None:
        return
    root = root_of(group, member, dst, group_dst, "dst")
    check_only_at_root(member, root, object_gather_list, "gather_object", "object_gather_list", "destination")
    if object_gather_list and len(object_gather_list) != member.size():
        raise ValueError(
            f"gather_object(object_gather_list): must have {member.size()} elements, got {len(object_gather_list)}"
        )
    objects = member.gather_objects(obj)
    if object_gather_list:
        object_gather_list[:] = objects


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Group = None,
    group_src: int | None = None,
) -> None:
    """Set the first element of a list to the object that rank `src` sends to this rank. Objects are pickled.

    Arguments:
        scatter_object_output_list: a list of at least one element; the first element is replaced by the received object.
        scatter_object_input_list: on rank `src`, a list of one object for each rank.
        src: the source's rank in the group of all processes; or pass `group_src`, the source's rank in
            `group`.
        group: a group; None selects the group of all processes.

    Raises ValueError if the output list is empty, or the input list on rank `src` does not have one object for each rank.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> mine = [None]
        >>> dist.scatter_object_list(mine, ["first"], src=0)
        >>> mine
        ['first']
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "scatter_object_list")) is None:
        return
    root = root_of(group, member, src, group_src, "src")
    if not scatter_object_output_list:
        raise ValueError("scatter_object_list(scatter_object_output_list): must have at least one element")
    given = list(scatter_object_input_list or ())
    if member.rank() == root and len(given) != member.size():
        raise ValueError(
            f"scatter_object_list(scatter_object_input_list): needs {member.size()} objects, got {len(given)}"
        )
    received = member.broadcast_object(given, root, "scatter_object_list")
    scatter_object_output_list[0] = received[member.rank()]
