"""Collectives of tensors, with PyTorch's interface."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rushlight_core import Tensor
from rushlight_core.futures import Future, collect_all

from .group import ProcessGroup, ReduceOp, Work
from .world import GroupMember, get_group_rank, resolve

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
]

Group = Any  # ProcessGroup, GroupMember.NON_GROUP_MEMBER or None


def find_member(group: Group, function: str) -> ProcessGroup | None:
    """Return the process group that the argument `group` selects, or warn and return None if this process is not in it."""
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


def root_of(group: Group, member: ProcessGroup, given: int | None, in_group: int | None, name: str) -> int:
    """Return the root's rank in the group.

    `given` is the root's rank in the group of all processes, and `in_group` is the root's rank in `group`. At
    least one of them must be None. `name` is the name of the caller's argument for `given`, such as "src";
    the caller's argument for `in_group` is then "group_src".
    """
    if given is not None and in_group is not None:
        raise ValueError(
            f"{name} and group_{name} are mutually exclusive: pass only one of them, got {given} and "
            f"{in_group}"
        )
    if in_group is not None:
        return in_group
    return get_group_rank(member, 0 if given is None else given)


def check_tensor(value: Any, function: str, argument: str) -> Tensor:
    """Return `value` if it is a tensor, and raise TypeError otherwise."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{function}({argument}): must be a Tensor, got {type(value).__name__}")
    return value


def check_tensors(values: Any, function: str, argument: str) -> list[Tensor]:
    """Return `values` as a list if it is a list or tuple of tensors, and raise TypeError otherwise."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{function}({argument}): must be a list of tensors, got {type(values).__name__}")
    return [check_tensor(value, function, argument) for value in values]


def _pieces(tensor: Tensor, size: int, function: str, argument: str) -> list[Tensor]:
    """Split a tensor into equal views, one for each rank."""
    if not tensor.is_contiguous():
        raise ValueError(f"{function}({argument}): must be contiguous")
    if tensor.numel() % size:
        raise ValueError(
            f"{function}({argument}): {tensor.numel()} elements cannot be split into equal parts for {size} ranks"
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
        tensor: the tensor, modified in place; its dtype and number of elements must be the same on all ranks.
            op: the reduction.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), the same shape on all ranks.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> dist.all_reduce(x, op=dist.ReduceOp.SUM)
        >>> x  # the sum over the ranks, of which there is one here
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "all_reduce")) is None:
        return None
    return _run(
        member,
        "all_reduce",
        async_op,
        [check_tensor(tensor, "all_reduce", "tensor")],
        op=_op(op, "all_reduce"),
    )


def all_reduce_coalesced(
    tensors: list[Tensor] | Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Future[list[Tensor]] | None:
    """Replace several tensors of one dtype on every rank by their reductions over all ranks, in one collective.

    Arguments:
        tensors: a tensor or a list of tensors, which are modified in place.
        op: the reduction.
        group: a group; None selects the group of all processes.
        async_op: whether to return a future of the tensors at once instead of waiting.

    Shape:
        - Tensors: (*), the same shapes on all ranks.

    Raises the same errors as `all_reduce`, and RuntimeError if ranks pass different numbers of tensors.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> x, y = torch.ones(2), torch.zeros(3)
        >>> all_reduce_coalesced([x, y])
        >>> x, y  # the sums over the ranks, of which there is one here
        (tensor([1., 1.]), tensor([0., 0., 0.]))
        >>> dist.destroy_process_group()
    """
    name = "all_reduce_coalesced"
    listed = [tensors] if isinstance(tensors, Tensor) else check_tensors(tensors, name, "tensors")
    if (member := find_member(group, name)) is None:
        return None
    work = member.run("all_reduce", listed, op=_op(op, name), async_op=async_op)
    return work.get_future() if async_op else None


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace a tensor on one rank by its reduction over all ranks. Other ranks' tensors are not changed.

    Arguments:
        tensor: the tensor, modified in place on rank `dst`; its dtype and number of elements must be the same
            on all ranks.
        dst: the destination's rank in the group of all processes; or pass `group_dst`, the destination's rank
            in `group`.
        op: the reduction.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), the same shape on all ranks.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> dist.reduce(x, dst=0)
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "reduce")) is None:
        return None
    root = root_of(group, member, dst, group_dst, "dst")
    return _run(
        member,
        "reduce",
        async_op,
        [check_tensor(tensor, "reduce", "tensor")],
        op=_op(op, "reduce"),
        root=root,
    )


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace a tensor on every rank by the tensor of one rank.

    Arguments:
        tensor: the tensor, modified in place; its dtype and number of elements must be the same on all ranks.
            src: the source's rank in the group of all processes; or pass `group_src`, the source's rank in
            `group`.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), the same shape on all ranks.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> dist.broadcast(x, src=0)
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "broadcast")) is None:
        return None
    root = root_of(group, member, src, group_src, "src")
    return _run(member, "broadcast", async_op, [check_tensor(tensor, "broadcast", "tensor")], root=root)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks to a list of tensors, one for each rank.

    Arguments:
        tensor_list: the tensors to which the results are written, one for each rank.
        tensor: the tensor of this rank.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), the same shape on all ranks.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> parts = [torch.empty(2) for _ in range(dist.get_world_size())]
        >>> dist.all_gather(parts, torch.tensor([1.0, 2.0]))
        >>> parts
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "all_gather")) is None:
        return None
    outputs = check_tensors(tensor_list, "all_gather", "tensor_list")
    return _run(member, "all_gather", async_op, [check_tensor(tensor, "all_gather", "tensor")], outputs)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks to one contiguous tensor, in the order of the ranks.

    Arguments:
        output_tensor: the tensor to which the result is written.
        input_tensor: the tensor of this rank.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - `input_tensor`: (N, *), the same shape on all ranks.
        - `output_tensor`: as many elements as the tensors of all ranks, for example (size * N, *) or (size, N, *).

    Raises ValueError if the sizes do not match; other errors are the same as for `all_reduce`.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> whole = torch.empty(dist.get_world_size() * 2)
        >>> all_gather_single(whole, torch.tensor([1.0, 2.0]))
        >>> whole
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _gather_single(output_tensor, input_tensor, group, async_op, "all_gather_single")


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks to one contiguous tensor, in the order of the ranks.

    This function is an older name of `all_gather_single`.

    Arguments:
        output_tensor: the tensor to which the result is written.
        input_tensor: the tensor of this rank.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - `input_tensor`: (*), with n elements; `output_tensor`: (*), with n elements for each rank.

    Raises ValueError if the sizes do not match; other errors are the same as for `all_reduce`.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> whole = torch.empty(dist.get_world_size() * 2)
        >>> dist.all_gather_into_tensor(whole, torch.tensor([1.0, 2.0]))
        >>> whole
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _gather_single(output_tensor, input_tensor, group, async_op, "all_gather_into_tensor")


def _gather_single(output: Any, input: Any, group: Group, async_op: bool, name: str) -> Work | None:
    if (member := find_member(group, name)) is None:
        return None
    outputs = _pieces(check_tensor(output, name, "output_tensor"), member.size(), name, "output_tensor")
    return _run(member, "all_gather", async_op, [check_tensor(input, name, "input_tensor")], outputs)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Future[list[Tensor]] | None:
    """Gather a list of tensors from each rank, and write the list of rank i to `output_tensor_lists[i]`.

    Arguments:
        output_tensor_lists: one list for each rank, with the tensors to which the results are written; each
            list is as long as `input_tensor_list`.
        input_tensor_list: the tensors of this rank.
        group: a group; None selects the group of all processes.
        async_op: whether to return a future of all outputs at once instead of waiting.

    Shape:
        - Tensors: (*); tensors at the same position of the lists have the same shape on all ranks.

    Raises TypeError if `output_tensor_lists` is not a list, and ValueError if it does not contain one list for each rank, or
    if the lengths of these lists and of `input_tensor_list` differ; other errors are the same as for `all_gather`.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> parts = [[torch.empty(2), torch.empty(1)] for _ in range(dist.get_world_size())]
        >>> all_gather_coalesced(parts, [torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
        >>> parts
        [[tensor([1., 2.]), tensor([3.])]]
        >>> dist.destroy_process_group()
    """
    name = "all_gather_coalesced"
    if (member := find_member(group, name)) is None:
        return None
    inputs = check_tensors(input_tensor_list, name, "input_tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError(
            f"{name}(output_tensor_lists): must be a list, got {type(output_tensor_lists).__name__}"
        )
    outputs = [check_tensors(part, name, "output_tensor_lists") for part in output_tensor_lists]
    if len(outputs) != member.size() or any(len(part) != len(inputs) for part in outputs):
        raise ValueError(
            f"{name}(output_tensor_lists): must have {member.size()} lists of {len(inputs)} tensors,"
            f" got lists of {[len(part) for part in outputs]}"
        )
    works = [
        member.run("all_gather", [tensor], [part[i] for part in outputs], async_op=True)
        for i, tensor in enumerate(inputs)
    ]
    if async_op:
        written = [tensor for part in outputs for tensor in part]
        return collect_all([work.get_future() for work in works]).then(lambda all_: _outputs(all_, written))
    for work in works:
        work.wait()
    return None


def _outputs(futures: Future[list[Future[Any]]], written: list[Tensor]) -> list[Tensor]:
    for future in futures.wait():
        future.wait()  # raises the error of the collective
    return written


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all ranks to a list of tensors on one rank; the other ranks pass no list.

    Arguments:
        tensor: the tensor of this rank.
        gather_list: on rank `dst`, the tensors to which the results are written, one for each rank.
        dst: the destination's rank in the group of all processes; or pass `group_dst`, the destination's rank
            in `group`.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), the same shape on all ranks.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> parts = [torch.empty(2) for _ in range(dist.get_world_size())]
        >>> dist.gather(torch.tensor([1.0, 2.0]), parts, dst=0)
        >>> parts
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "gather")) is None:
        return None
    root = root_of(group, member, dst, group_dst, "dst")
    check_only_at_root(member, root, gather_list, "gather", "gather_list", "destination")
    outputs = check_tensors(gather_list or [], "gather", "gather_list")
    return _run(member, "gather", async_op, [check_tensor(tensor, "gather", "tensor")], outputs, root=root)


def check_only_at_root(
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
    """Distribute a list of tensors from one rank. Entry i of the list is written to `tensor` on rank i.

    Arguments:
        tensor: the tensor to which the result is written. scatter_list: on rank `src`, a list with one tensor
            for each rank.
        src: the source's rank in the group of all processes; or pass `group_src`, the source's rank in
            `group`.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), the same shape on all ranks.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> mine = torch.empty(2)
        >>> dist.scatter(mine, [torch.tensor([1.0, 2.0])], src=0)
        >>> mine
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "scatter")) is None:
        return None
    root = root_of(group, member, src, group_src, "src")
    check_only_at_root(member, root, scatter_list, "scatter", "scatter_list", "source")
    inputs = check_tensors(scatter_list or [], "scatter", "scatter_list")
    return _run(member, "scatter", async_op, inputs, [check_tensor(tensor, "scatter", "tensor")], root=root)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce each tensor of a list over all ranks, and write the reduced tensor i to `output` on rank i.

    Arguments:
        output: the tensor to which the result is written.
        input_list: a tensor for each rank.
        op: the reduction.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), the same shape on all ranks.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> mine = torch.empty(2)
        >>> dist.reduce_scatter(mine, [torch.tensor([1.0, 2.0])])
        >>> mine
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    name = "reduce_scatter"
    if (member := find_member(group, name)) is None:
        return None
    inputs = check_tensors(input_list, name, "input_list")
    return _run(member, name, async_op, inputs, [check_tensor(output, name, "output")], op=_op(op, name))


def reduce_scatter_single(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all ranks, and write this rank's part of the result to `output`.

    Arguments:
        output: the tensor to which the result is written.
        input: the tensor that is reduced.
        op: the reduction.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - `input`: (size * N, *) or (size, N, *), the same shape on all ranks.
        - `output`: `1 / size` of the elements of `input`, for example (N, *).

    Raises ValueError if the sizes do not match; other errors are the same as for `all_reduce`.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> mine = torch.empty(2)
        >>> reduce_scatter_single(mine, torch.tensor([1.0, 2.0]))
        >>> mine
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _scatter_single(output, input, op, group, async_op, "reduce_scatter_single")


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all ranks, and write this rank's part of the result to `output`.

    This function is an older name of `reduce_scatter_single`.

    Arguments:
        output: the tensor to which the result is written.
        input: the tensor that is reduced.
        op: the reduction.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - `output`: (*), with n elements; `input`: (*), with n elements for each rank.

    Raises ValueError if the sizes do not match; other errors are the same as for `all_reduce`.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> mine = torch.empty(2)
        >>> dist.reduce_scatter_tensor(mine, torch.tensor([1.0, 2.0]))
        >>> mine
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _scatter_single(output, input, op, group, async_op, "reduce_scatter_tensor")


def _scatter_single(output: Any, input: Any, op: Any, group: Group, async_op: bool, name: str) -> Work | None:
    if (member := find_member(group, name)) is None:
        return None
    inputs = _pieces(check_tensor(input, name, "input").contiguous(), member.size(), name, "input")
    outputs = [check_tensor(output, name, "output")]
    return _run(member, "reduce_scatter", async_op, inputs, outputs, op=_op(op, name))


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send `input_tensor_list[i]` to rank i, and receive `output_tensor_list[i]` from rank i.

    Arguments:
        output_tensor_list: the tensors to which the results are written, one for each rank.
        input_tensor_list: a tensor for each rank.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - Tensors: (*), all with the same number of elements.

    Raises RuntimeError if the calls of the ranks do not match, if a rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> received = [torch.empty(2)]
        >>> dist.all_to_all(received, [torch.tensor([1.0, 2.0])])
        >>> received
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "all_to_all")) is None:
        return None
    inputs = check_tensors(input_tensor_list, "all_to_all", "input_tensor_list")
    outputs = check_tensors(output_tensor_list, "all_to_all", "output_tensor_list")
    return _run(member, "all_to_all", async_op, inputs, outputs)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send an equal part of `input` to each rank, and concatenate the received parts in `output`.

    Arguments:
        output: the tensor to which the result is written.
        input: the tensor whose parts are sent.
        output_split_sizes, input_split_sizes: None, or equal sizes.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Shape:
        - `output` and `input`: (*), with the same number of elements, divisible by the number of ranks.

    Raises NotImplementedError for parts of different sizes, and RuntimeError if the calls of the ranks do not match, if a
    rank ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> received = torch.empty(2)
        >>> dist.all_to_all_single(received, torch.tensor([1.0, 2.0]))
        >>> received
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    name = "all_to_all_single"
    if (member := find_member(group, name)) is None:
        return None
    for argument, sizes in (
        ("output_split_sizes", output_split_sizes),
        ("input_split_sizes", input_split_sizes),
    ):
        if sizes and len(set(sizes)) > 1:
            raise NotImplementedError(f"{name}({argument}): must be None or equal sizes, got {list(sizes)}")
    outputs = _pieces(check_tensor(output, name, "output"), member.size(), name, "output")
    inputs = _pieces(check_tensor(input, name, "input").contiguous(), member.size(), name, "input")
    return _run(member, "all_to_all", async_op, inputs, outputs)


def barrier(
    group: Group = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until every rank has called this function.

    Arguments:
        device_ids: must be None, because the backend has no devices.
        timeout: how long to wait; must be None with `async_op`. None selects the timeout of the group.
        group: a group; None selects the group of all processes.
        async_op: whether to return a `Work` at once instead of waiting.

    Raises ValueError if `timeout` is given together with `async_op`, and RuntimeError when the timeout expires. This error
    names the missing ranks, and a missing rank that calls `barrier` later raises the same error.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.barrier()
        >>> dist.destroy_process_group()
    """
    if device_ids is not None:
        raise RuntimeError(f"barrier(device_ids): must be None for the backend shm, got {device_ids}")
    if (member := find_member(group, "barrier")) is None:
        return None
    if not async_op:
        member.run_barrier(timeout)
        return None
    if timeout is not None:
        raise ValueError(
            "barrier(timeout): must be None with async_op=True\nPass the timeout to Work.wait()."
        )
    return member.run("barrier", async_op=True)


def monitored_barrier(
    group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until every rank has called this function. The error after a timeout names all missing ranks.

    Arguments:
        timeout: how long to wait. None selects the timeout of the group.
        wait_all_ranks: has no effect, because the error always names all missing ranks.
        group: a group; None selects the group of all processes.

    Raises RuntimeError when the timeout expires. If a missing rank calls this function later, the call raises
    RuntimeError, too.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.monitored_barrier()
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "monitored_barrier")) is None:
        return
    member.run_barrier(timeout, "monitored")
