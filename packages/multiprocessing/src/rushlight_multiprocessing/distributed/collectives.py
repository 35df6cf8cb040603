"""Collectives by PyTorch's names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from rushlight_core import Tensor

from .group import ProcessGroup, ReduceOp, Work
from .world import GroupMember, get_group_rank, resolve

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]

Group = Any  # ProcessGroup, GroupMember.NON_GROUP_MEMBER or None


def _member(group: Group, function: str) -> ProcessGroup | None:
    if group is GroupMember.NON_GROUP_MEMBER:
        warnings.warn(
            f"{function}(group): this rank is not in the group, so the call does nothing", stacklevel=3
        )
        return None
    return resolve(group)


def _op(op: Any, function: str) -> str:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{function}(op): must be a ReduceOp, got {type(op).__name__}")
    if op is ReduceOp.PREMUL_SUM:
        raise NotImplementedError(f"{function}(op): PREMUL_SUM is not supported: multiply the tensor first")
    return op.value


def _root(group: Group, member: ProcessGroup, given: int | None, in_group: int | None, name: str) -> int:
    """Return the root's rank in the group, from the argument `name` or from its form `group_<name>`."""
    if given is not None and in_group is not None:
        raise ValueError(f"{name} and group_{name} are two names of one rank: pass one of them")
    if in_group is not None:
        return in_group
    return get_group_rank(member, 0 if given is None else given)


def _tensor(value: Any, function: str, argument: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{function}({argument}): must be a Tensor, got {type(value).__name__}")
    return value


def _tensors(values: Any, function: str, argument: str) -> list[Tensor]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{function}({argument}): must be a list of tensors, got {type(values).__name__}")
    return [_tensor(value, function, argument) for value in values]


def _pieces(tensor: Tensor, size: int, function: str, argument: str) -> list[Tensor]:
    """Return the parts of a tensor for the ranks, as views."""
    if not tensor.is_contiguous():
        raise ValueError(f"{function}({argument}): must be contiguous")
    if tensor.numel() % size:
        raise ValueError(
            f"{function}({argument}): {tensor.numel()} elements do not divide into equal parts for {size} ranks"
        )
    n = tensor.numel() // size
    flat = tensor.detach().view(-1)
    return [flat[i * n : (i + 1) * n] for i in range(size)]


def _run(
    member: ProcessGroup,
    kind: str,
    async_op: bool,
    inputs: Sequence[Tensor] = (),
    outputs: Sequence[Tensor] = (),
    op: str = "SUM",
    root: int = 0,
) -> Work | None:
    work = member.run(kind, inputs, outputs, op, root, async_op=async_op)
    return work if async_op else None


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Replace a tensor on every rank by its reduction over all ranks.

    Arguments:
        tensor: of the same dtype and number of elements on all ranks; written in place.
        op: the reduction.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Raises RuntimeError if ranks disagree, if one of them ends, and after the timeout of the group."""
    if (member := _member(group, "all_reduce")) is None:
        return None
    return _run(
        member, "all_reduce", async_op, [_tensor(tensor, "all_reduce", "tensor")], op=_op(op, "all_reduce")
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace a tensor on rank `dst` by its reduction over all ranks. Other ranks' tensors stay as they are."""
    if (member := _member(group, "reduce")) is None:
        return None
    root = _root(group, member, dst, group_dst, "dst")
    return _run(
        member, "reduce", async_op, [_tensor(tensor, "reduce", "tensor")], op=_op(op, "reduce"), root=root
    )


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace a tensor on every rank by that of rank `src`."""
    if (member := _member(group, "broadcast")) is None:
        return None
    root = _root(group, member, src, group_src, "src")
    return _run(member, "broadcast", async_op, [_tensor(tensor, "broadcast", "tensor")], root=root)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks to a list of tensors, one for each rank."""
    if (member := _member(group, "all_gather")) is None:
        return None
    outputs = _tensors(tensor_list, "all_gather", "tensor_list")
    return _run(member, "all_gather", async_op, [_tensor(tensor, "all_gather", "tensor")], outputs)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks one after the other to a contiguous tensor."""
    name = "all_gather_into_tensor"
    if (member := _member(group, name)) is None:
        return None
    outputs = _pieces(_tensor(output_tensor, name, "output_tensor"), member.size(), name, "output_tensor")
    return _run(member, "all_gather", async_op, [_tensor(input_tensor, name, "input_tensor")], outputs)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all ranks to a list of tensors on rank `dst`, which alone passes the list."""
    if (member := _member(group, "gather")) is None:
        return None
    root = _root(group, member, dst, group_dst, "dst")
    _only_at_root(member, root, gather_list, "gather", "gather_list", "destination")
    outputs = _tensors(gather_list or [], "gather", "gather_list")
    return _run(member, "gather", async_op, [_tensor(tensor, "gather", "tensor")], outputs, root=root)


def _only_at_root(
    member: ProcessGroup, root: int, values: Any, function: str, argument: str, what: str
) -> None:
    if (member.rank() == root) == bool(values):
        return
    if values:
        raise ValueError(f"{function}({argument}): must be None or empty on ranks that are not the {what}")
    raise ValueError(f"{function}({argument}): must be specified on the {what} rank")


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write to a tensor on each rank the one that rank `src` has for it in a list, which it alone passes."""
    if (member := _member(group, "scatter")) is None:
        return None
    root = _root(group, member, src, group_src, "src")
    _only_at_root(member, root, scatter_list, "scatter", "scatter_list", "source")
    inputs = _tensors(scatter_list or [], "scatter", "scatter_list")
    return _run(member, "scatter", async_op, inputs, [_tensor(tensor, "scatter", "tensor")], root=root)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the tensors of a list over all ranks, and write to `output` the one with this rank's number."""
    name = "reduce_scatter"
    if (member := _member(group, name)) is None:
        return None
    inputs = _tensors(input_list, name, "input_list")
    return _run(member, name, async_op, inputs, [_tensor(output, name, "output")], op=_op(op, name))


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all ranks, and write this rank's part of it to `output`."""
    name = "reduce_scatter_tensor"
    if (member := _member(group, name)) is None:
        return None
    whole = _tensor(input, name, "input").contiguous()
    inputs = _pieces(whole, member.size(), name, "input")
    return _run(
        member, "reduce_scatter", async_op, inputs, [_tensor(output, name, "output")], op=_op(op, name)
    )


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send to each rank its tensor of a list, and write what the ranks sent to another list.

    All tensors must have the same number of elements."""
    if (member := _member(group, "all_to_all")) is None:
        return None
    inputs = _tensors(input_tensor_list, "all_to_all", "input_tensor_list")
    outputs = _tensors(output_tensor_list, "all_to_all", "output_tensor_list")
    return _run(member, "all_to_all", async_op, inputs, outputs)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send to each rank an equal part of a tensor, and write what the ranks sent one after the other to `output`."""
    name = "all_to_all_single"
    if (member := _member(group, name)) is None:
        return None
    for argument, sizes in (
        ("output_split_sizes", output_split_sizes),
        ("input_split_sizes", input_split_sizes),
    ):
        if sizes and len(set(sizes)) > 1:
            raise NotImplementedError(f"{name}({argument}): parts of different sizes are not supported")
    outputs = _pieces(_tensor(output, name, "output"), member.size(), name, "output")
    inputs = _pieces(_tensor(input, name, "input").contiguous(), member.size(), name, "input")
    return _run(member, "all_to_all", async_op, inputs, outputs)


def barrier(
    group: Group = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until every rank has called this.

    `device_ids` must be None: the backend serves no devices. Raises RuntimeError after `timeout`, which is not
    allowed together with `async_op`."""
    if device_ids is not None:
        raise RuntimeError("barrier(device_ids): the backend shm has no devices")
    if (member := _member(group, "barrier")) is None:
        return None
    if timeout is None:
        return _run(member, "barrier", async_op)
    if async_op:
        raise ValueError("barrier(timeout): pass the timeout to Work.wait() with async_op=True")
    member.run("barrier", async_op=True).wait(timeout)
    return None


def monitored_barrier(
    group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until every rank has called this. The error after the timeout names every rank that has not.

    `wait_all_ranks` has no effect: all missing ranks are named in any case."""
    if (member := _member(group, "monitored_barrier")) is None:
        return
    work = member.run("barrier", label="monitored", async_op=True)
    work.wait(timeout)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects of a list by those of rank `src`, which are pickled. `device` must be None or the CPU."""
    _on_cpu(device, "broadcast_object_list")
    if (member := _member(group, "broadcast_object_list")) is None:
        return
    root = _root(group, member, src, group_src, "src")
    received = member.broadcast_object(list(object_list), root, f"broadcast_object_list[{len(object_list)}]")
    if member.rank() != root:
        object_list[:] = received


def _on_cpu(device: Any, function: str) -> None:
    if device is not None and str(device) != "cpu":
        raise ValueError(f"{function}(device): must be None or the CPU for the backend shm, got {device}")


def all_gather_object(object_list: list[Any], obj: Any, group: Group = None) -> None:
    """Write the objects of all ranks, which are pickled, to a list with one place for each rank."""
    if (member := _member(group, "all_gather_object")) is None:
        return
    if len(object_list) != member.size():
        raise ValueError(
            f"all_gather_object(object_list): needs {member.size()} places, got {len(object_list)}"
        )
    object_list[:] = member.gather_objects(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Group = None,
    group_dst: int | None = None,
) -> None:
    """Write the objects of all ranks, which are pickled, to a list on rank `dst`, which alone passes the list."""
    if (member := _member(group, "gather_object")) is None:
        return
    root = _root(group, member, dst, group_dst, "dst")
    _only_at_root(member, root, object_gather_list, "gather_object", "object_gather_list", "destination")
    if object_gather_list and len(object_gather_list) != member.size():
        raise ValueError(
            f"gather_object(object_gather_list): needs {member.size()} places, got {len(object_gather_list)}"
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
    """Write to the first place of a list the object that rank `src` has for this rank; objects are pickled."""
    if (member := _member(group, "scatter_object_list")) is None:
        return
    root = _root(group, member, src, group_src, "src")
    if not scatter_object_output_list:
        raise ValueError("scatter_object_list(scatter_object_output_list): must have a place for the object")
    given = list(scatter_object_input_list or ())
    if member.rank() == root and len(given) != member.size():
        raise ValueError(
            f"scatter_object_list(scatter_object_input_list): needs {member.size()} objects, got {len(given)}"
        )
    received = member.broadcast_object(given, root, "scatter_object_list")
    scatter_object_output_list[0] = received[member.rank()]


def _refuse(function: str) -> NoReturn:
    raise NotImplementedError(
        f"{function}(): messages between two ranks are not supported by the backend shm\n"
        "Use a group of two ranks and broadcast(), or a rushlight.multiprocessing.Queue."
    )


def send(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: messages between two ranks are not supported."""
    _refuse("send")


def recv(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: messages between two ranks are not supported."""
    _refuse("recv")


def isend(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: messages between two ranks are not supported."""
    _refuse("isend")


def irecv(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: messages between two ranks are not supported."""
    _refuse("irecv")


def batch_isend_irecv(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: messages between two ranks are not supported."""
    _refuse("batch_isend_irecv")


def send_object_list(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: messages between two ranks are not supported."""
    _refuse("send_object_list")


def recv_object_list(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: messages between two ranks are not supported."""
    _refuse("recv_object_list")
