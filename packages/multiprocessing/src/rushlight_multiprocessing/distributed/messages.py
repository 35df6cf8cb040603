"""Point-to-point messages between two ranks, with PyTorch's interface."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor

from .collectives import check_tensor, find_member
from .group import ProcessGroup, Work
from .object_collectives import on_cpu
from .world import get_global_rank, get_group_rank, resolve

__all__ = [
    "P2POp",
    "batch_isend_irecv",
    "irecv",
    "isend",
    "recv",
    "recv_object_list",
    "send",
    "send_object_list",
]

Group = Any  # ProcessGroup, GroupMember.NON_GROUP_MEMBER or None


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send a tensor to another process, or to this process.

    The send is complete as soon as the receiver has read all of the tensor except a rest that fits into the
    shared memory of the group. The tensor may be modified after the send is complete.

    Arguments:
        tensor: the tensor to send; its dtype and number of elements must match those of the tensor in the
            matching `irecv`.
        dst: the destination's rank in the group of all processes.
        group: a group; None selects the group of all processes.
        tag: an integer. Messages with the same tag between two ranks are received in the order in which they
            are sent.
        group_dst: the destination's rank in `group`, in place of `dst`.

    Shape:
        - `tensor`: (*), of any shape.

    Return a `Work`, or None if this process is not in the group. Raises ValueError if the destination is not a rank of the
    group. `Work.wait` raises RuntimeError if the other process ends, or when the timeout of the group expires.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> sent = dist.isend(torch.tensor([1.0, 2.0]), dst=0)  # to the only rank there is
        >>> x = torch.empty(2)
        >>> dist.irecv(x, src=0).wait(), sent.wait()
        (True, True)
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "isend")) is None:
        return None
    check_tensor(tensor, "isend", "tensor")
    return member.send([tensor], _peer(member, dst, group_dst, "isend", "dst"), tag)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive a tensor from another process, or from this process.

    Arguments:
        tensor: the tensor to overwrite; its dtype and number of elements must match those of the tensor that
            is sent.
        src: the source's rank in the group of all processes. If `src` and `group_src` are None, the message may come from
            any rank.
        group: a group; None selects the group of all processes.
        tag: the tag of the message.
        group_src: the source's rank in `group`, in place of `src`.

    Shape:
        - `tensor`: (*), with as many elements as the tensor that is sent.

    Return a `Work`, or None if this process is not in the group. Raises ValueError if the source is not a
    rank of the group. `Work.wait` raises RuntimeError if the dtype or the number of elements of `tensor`
    differs from those of the tensor that is sent, if the other process ends, or when the timeout expires. If
    the dtypes or the numbers of elements differ, the error shows the source lines of both calls.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.empty(2)
        >>> received = dist.irecv(x)  # from any rank
        >>> dist.isend(torch.tensor([1.0, 2.0]), dst=0).wait(), received.wait()
        (True, True)
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    if (member := find_member(group, "irecv")) is None:
        return None
    check_tensor(tensor, "irecv", "tensor")
    if src is None and group_src is None:
        return member.recv_anysource([tensor], tag)
    return member.recv([tensor], _peer(member, src, group_src, "irecv", "src"), tag)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to another process, and wait until the tensor may be modified.

    Arguments:
        tensor, dst, group, tag, group_dst: as for `isend`.

    Shape:
        - `tensor`: (*), of any shape.

    Raises ValueError if the destination is this process or not a rank of the group, and RuntimeError if the other process
    ends, or when the timeout of the group expires.

    Example::

        if dist.get_rank() == 0:
            dist.send(torch.tensor([1.0, 2.0]), dst=1)
        else:
            x = torch.empty(2)
            dist.recv(x, src=0)
    """
    if (member := find_member(group, "send")) is None:
        return
    peer = _peer(member, dst, group_dst, "send", "dst")
    _check_other(member, peer, "destination")
    check_tensor(tensor, "send", "tensor")
    member.send([tensor], peer, tag).wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from another process.

    Arguments:
        tensor, src, group, tag, group_src: as for `irecv`.

    Shape:
        - `tensor`: (*), with as many elements as the tensor that is sent.

    Return the sender's rank in the group of all processes, or -1 if this process is not in the group. Raises
    ValueError if the source is not a rank of the group, or if no source is given and the sender is this
    process, and RuntimeError for the reasons for which `Work.wait` raises it after `irecv`.

    Example::

        x = torch.empty(2)
        sender = dist.recv(x)  # from any rank
    """
    if (member := find_member(group, "recv")) is None:
        return -1
    work = irecv(tensor, src, group, tag, group_src)
    assert work is not None
    work.wait()
    if src is None and group_src is None:
        _check_other(member, work.source_rank(), "source")
    return get_global_rank(member, work.source_rank())


class P2POp:
    """A send or receive operation for `batch_isend_irecv`.

    Arguments:
        op: `isend` or `irecv`.
        tensor: the tensor to send or, for `irecv`, the tensor to overwrite.
        peer: the other process's rank in the group of all processes.
        group: a group; None selects the group of all processes.
        tag: the tag of the message.
        group_peer: the other process's rank in `group`, in place of `peer`.

    Shape:
        - `tensor`: (*), with the same number of elements on both ranks.

    Raises ValueError if `op` is neither `isend` nor `irecv` or the other process is not in the group, and TypeError if
    `tensor` is not a tensor.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> op = dist.P2POp(dist.isend, torch.ones(2), 0)
        >>> op.peer, op.op.__name__
        (0, 'isend')
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Tensor,
        peer: int | None = None,
        group: Group = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"P2POp(op): must be isend or irecv of torch.distributed, got {op!r}")
        check_tensor(tensor, "P2POp", "tensor")
        self.op: Callable[..., Work | None] = op
        self.tensor: Tensor = tensor
        self.group: ProcessGroup = resolve(group)
        self.group_peer: int = _peer(self.group, peer, group_peer, "P2POp", "peer")
        self.peer: int = get_global_rank(self.group, self.group_peer)
        self.tag: int = tag

    def __repr__(self) -> str:
        ends = (self.group.rank(), self.group_peer)
        src, dst = ends if self.op is isend else ends[::-1]
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={src}, group_dst={dst},  "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several sends and receives, and return a `Work` for each.

    The order of the list matters only for messages with the same direction and tag between the same two
    ranks.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> mine, theirs = torch.ones(2), torch.empty(2)
        >>> ops = [dist.P2POp(dist.isend, mine, 0), dist.P2POp(dist.irecv, theirs, 0)]  # to the only rank there is
        >>> for work in dist.batch_isend_irecv(ops):
        ...     _ = work.wait()
        >>> theirs
        tensor([1., 1.])
        >>> dist.destroy_process_group()

    Raises ValueError if the list is empty, contains an object that is not a `P2POp`, or contains messages of several
    groups."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("batch_isend_irecv(p2p_op_list): must be a list of P2POp")
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv(p2p_op_list): must have at least one P2POp")
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("batch_isend_irecv(p2p_op_list): all messages must use the same group")
    works = []
    for op in p2p_op_list:
        ends = {"group_dst" if op.op is isend else "group_src": op.group_peer}
        work = op.op(op.tensor, group=op.group, tag=op.tag, **ends)
        assert work is not None
        works.append(work)
    return works


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Group = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Pickle the objects of a list, and send them to another process.

    Arguments:
        object_list: a list of at least one object.
        dst, group, group_dst: as for `isend`.
        device: must be None or the CPU.
        use_batch: has no effect, because there are no communicators to choose between.

    Raises ValueError if the list is empty, or if the destination is this process or not a rank of the group.

    Example::

        if dist.get_rank() == 0:
            dist.send_object_list([{"epoch": 3}, "text"], dst=1)
        else:
            objects = [None, None]
            dist.recv_object_list(objects, src=0)
    """
    on_cpu(device, "send_object_list")
    if (member := find_member(group, "send_object_list")) is None:
        return
    peer = _peer(member, dst, group_dst, "send_object_list", "dst")
    _check_other(member, peer, "destination")
    if not object_list:
        raise ValueError("send_object_list(object_list): must have at least one object")
    pickled = [pickle.dumps(value) for value in object_list]
    sizes = core.tensor([len(data) for data in pickled])
    member.send([sizes], peer, 0).wait()
    member.send([core.frombuffer(bytearray(b"".join(pickled)), dtype=core.uint8)], peer, 0).wait()


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Replace the objects of a list by the objects that another process sends with `send_object_list`.

    Arguments:
        object_list: a list whose length is the number of objects that are sent; the received objects replace
            its elements.
        src, group, group_src: as for `irecv`.
        device: must be None or the CPU.
        use_batch: has no effect.

    Return the sender's rank in the group of all processes, or -1 if this process is not in the group. Objects are unpickled,
    which runs code that the sender chooses: receive only from processes that you trust. Raises ValueError if the source is
    this process or not a rank of the group, and RuntimeError if the number of objects that are sent differs from the length
    of `object_list`.

    Example::

        objects = [None, None]
        dist.recv_object_list(objects, src=0)
    """
    on_cpu(device, "recv_object_list")
    if (member := find_member(group, "recv_object_list")) is None:
        return -1
    sizes = core.empty(len(object_list), dtype=core.int64)
    if src is None and group_src is None:
        first = member.recv_anysource([sizes], 0)
    else:
        peer = _peer(member, src, group_src, "recv_object_list", "src")
        _check_other(member, peer, "source")
        first = member.recv([sizes], peer, 0)
    first.wait()
    data = core.empty(int(sizes.sum().item()), dtype=core.uint8)
    member.recv([data], first.source_rank(), 0).wait()
    whole = memoryview(data.numpy())
    at = 0
    for index, size in enumerate(sizes.tolist()):
        object_list[index] = pickle.loads(whole[at : at + size])
        at += size
    return get_global_rank(member, first.source_rank())


def _peer(member: ProcessGroup, given: int | None, in_group: int | None, function: str, name: str) -> int:
    """Return the rank that the other process has in the group `member`.

    Exactly one of `given`, the rank in the group of all processes, and `in_group`, the rank in this group,
    must be passed. Error messages call these arguments `name` and `group_<name>`.
    """
    if (given is None) == (in_group is None):
        raise ValueError(f"{function}(): exactly one of {name} and group_{name} must be passed")
    if given is not None:
        return get_group_rank(member, given)
    assert in_group is not None
    get_global_rank(member, in_group)
    return in_group


def _check_other(member: ProcessGroup, peer: int, what: str) -> None:
    if peer == member.rank():
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process."
        )
