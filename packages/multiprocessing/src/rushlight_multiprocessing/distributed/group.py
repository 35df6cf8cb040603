"""Groups of processes that communicate over shared memory, and handles of pending collectives."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import rushlight_core as core
from rushlight_core import _C, Tensor
from rushlight_core.futures import Future

from .stores import Store

__all__ = ["ProcessGroup", "ReduceOp", "Work"]

DEFAULT_TIMEOUT = timedelta(minutes=30)


class ReduceOp(Enum):
    """A reduction, which combines the values of all ranks into one value, in the order of the ranks.

    Values of float16 and bfloat16 are reduced in float32, and the result is rounded once. AVG requires a
    floating-point or complex dtype, MIN and MAX require a real dtype, and BAND, BOR and BXOR require integers
    or bool. PREMUL_SUM is not supported.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.tensor([1.0])
        >>> dist.all_reduce(x, op=dist.ReduceOp.AVG)
        >>> dist.destroy_process_group()
    """

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PRODUCT"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"
    PREMUL_SUM = "PREMUL_SUM"

    RedOpType: type[ReduceOp]


ReduceOp.RedOpType = ReduceOp  # in PyTorch, RedOpType is the class of ReduceOp.SUM and others


class Work:
    """A handle of a pending collective or message.

    `isend`, `irecv` and calls with `async_op=True` return a `Work`.

    Shape:
        - `result()`: the shapes of the tensors into which the collective writes.

    `wait` raises the errors of the collective, and RuntimeError if the collective does not end within the timeout.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> work = dist.all_reduce(torch.ones(3), async_op=True)
        >>> work.wait()
        True
        >>> dist.destroy_process_group()
    """

    def __init__(self, handle: Any, results: list[Tensor]) -> None:
        self._handle = handle
        self._results = results

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation has ended, and return True. Raise its error, if any.

        Raise RuntimeError if `timeout` expires.
        """
        seconds = -1.0 if timeout is None else timeout.total_seconds()
        if not _C._wait_work(self._handle, seconds):
            raise RuntimeError(f"Work.wait(timeout): the collective has not ended after {seconds:g} seconds")
        return True

    def is_completed(self) -> bool:
        """Return whether the collective has ended, with or without an error."""
        return _C._work_done(self._handle)

    def is_success(self) -> bool:
        """Return whether the collective has ended without an error."""
        return _C._work_done(self._handle) and not _C._work_failed(self._handle)

    def exception(self) -> BaseException | None:
        """Return the exception that the collective raised, or None."""
        if not _C._work_failed(self._handle):
            return None
        try:
            _C._wait_work(self._handle, 0.0)
        except Exception as error:
            return error
        return None

    def result(self) -> list[Tensor]:
        """Return the tensors to which the collective writes its results."""
        return self._results

    def get_future(self) -> Future[list[Tensor]]:
        """Return a future that is set to `result()`, or to the exception of the collective if it has failed.

        If the collective has not ended yet, a new thread waits until it has ended, sets the future, and runs
        the callbacks that were added to the future in the meantime.
        """
        future: Future[list[Tensor]] = Future()

        def wait() -> None:
            try:
                self.wait()
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(self.result())

        if self.is_completed():
            wait()
        else:
            threading.Thread(target=wait, name="WorkFuture", daemon=True).start()
        return future

    def source_rank(self) -> int:
        """Return the group rank of the process that sent the message, or -1 if the message has not arrived yet."""
        return _C._work_source(self._handle)

    _source_rank = source_rank  # PyTorch's name in Python


def _machine() -> str:
    """Return a string that is equal in two processes only if they can open each other's files through /proc."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"


def _where() -> str:
    """Return the file and line of the user's code that called this library."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("rushlight"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class ProcessGroup:
    """A group of processes on one machine, of which this process is a member.

    `init_process_group` and `new_group` create groups. The memory of a group is an anonymous file, which exists until the
    last process that maps it ends.

    Shape:
        - Tensors of collectives may have any shape.

    Raises RuntimeError if rank 0 is on another machine or in another container, or if the memory of the group, which rank
    0 creates, cannot be opened.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.group.WORLD.rank(), dist.group.WORLD.size()
        (0, 1)
        >>> dist.destroy_process_group()
    """

    def __init__(self, store: Store, name: str, rank: int, size: int, timeout: timedelta) -> None:
        self._rank = rank
        self._size = size
        self._name = name
        self._timeout = timeout
        seconds = timeout.total_seconds()
        fd = -1
        try:
            if rank == 0:
                fd = os.memfd_create("rushlight-group", os.MFD_CLOEXEC)
                os.ftruncate(fd, _C._group_bytes(size))
                store.set(f"{name}/file", f"{_machine()} {os.getpid()} {fd}")
            else:
                store.wait([f"{name}/file"], timeout)
                machine, process, number = store.get(f"{name}/file").decode().split()
                if machine != _machine():
                    raise RuntimeError(
                        "init_process_group(backend='shm'): rank 0 is on another machine or in another container\n"
                        "The backend shm connects only processes in one PID namespace of one machine."
                    )
                try:
                    fd = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
                except OSError as error:
                    raise RuntimeError(
                        f"init_process_group(): cannot open the memory of rank 0 (process {process}): {error}"
                    ) from None
            self._handle: Any = _C._new_group(fd, rank, size, seconds)
            self.run("barrier", label=f"while group {name} is made").wait()
            if rank == 0:
                store.delete_key(f"{name}/file")  # a later group that uses this store must not find it
        finally:
            if fd >= 0:
                os.close(fd)

    def rank(self) -> int:
        """Return the rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of processes in the group."""
        return self._size

    def name(self) -> str:
        """Return the name of the backend."""
        return "shm"

    @property
    def group_name(self) -> str:
        """The name of the group, which is the same on all ranks."""
        return self._name

    def __repr__(self) -> str:
        return f"ProcessGroup(shm, rank {self._rank} of {self._size})"

    def run(
        self,
        kind: str,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        op: str = "SUM",
        root: int = 0,
        label: str = "",
        async_op: bool = False,
    ) -> Work:
        """Run a collective of rushlight/collective.h, or start it without waiting if `async_op` is true."""
        handle = _C._collective(
            self._handle, kind, op, root, list(inputs), list(outputs), label, _where(), async_op
        )
        return Work(handle, list(outputs) or list(inputs))

    def run_barrier(self, timeout: timedelta | None, label: str = "") -> None:
        """Wait until every rank has called this method, but at most `timeout` (default: the group's timeout).

        When the timeout expires, the error names the missing ranks. The group cannot be used afterwards: if a rank calls
        this method later, the same error is raised."""
        if timeout is not None:
            _C._set_group_timeout(self._handle, timeout.total_seconds())
        try:
            self.run("barrier", label=label)
        finally:
            self.set_timeout(self._timeout)

    def send(self, tensors: list[Tensor], dstRank: int, tag: int) -> Work:
        """Begin to send the tensor in `tensors`, a list of one tensor, to a rank of the group."""
        return self._message(True, tensors, dstRank, tag)

    def recv(self, tensors: list[Tensor], srcRank: int, tag: int) -> Work:
        """Begin to receive the tensor in `tensors`, a list of one tensor, from a rank of the group."""
        if srcRank < 0:
            raise ValueError(f"ProcessGroup.recv(srcRank): must be a rank of the group, got {srcRank}")
        return self._message(False, tensors, srcRank, tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> Work:
        """Begin to receive the tensor in `tensors`, a list of one tensor, from any rank of the group."""
        return self._message(False, tensors, -1, tag)

    def _message(self, sends: bool, tensors: list[Tensor], peer: int, tag: int) -> Work:
        if len(tensors) != 1:
            raise ValueError(f"ProcessGroup: a message must have exactly one tensor, got {len(tensors)}")
        handle = _C._message(self._handle, sends, tensors[0], peer, tag, _where())
        return Work(handle, [] if sends else list(tensors))

    # The seam: rushlight_core.seams.collectives.Group.

    def reduce_tensors(self, tensors: Sequence[Tensor], op: str = "SUM", label: str = "") -> Work:
        """Begin to reduce tensors of one dtype over all ranks. The results overwrite the tensors."""
        return self.run("all_reduce", tensors, op=op, label=label, async_op=True)

    def broadcast_tensors(self, tensors: Sequence[Tensor], root: int = 0, label: str = "") -> Work:
        """Begin to broadcast the tensors of rank `root`. The other ranks' `tensors` are overwritten."""
        return self.run("broadcast", tensors, root=root, label=label, async_op=True)

    def broadcast_object(self, value: Any, root: int = 0, label: str = "") -> Any:
        """Broadcast the object of one rank by pickling, and return it on every rank."""
        data, error = _pickled(value) if self._rank == root else (core.empty(0, dtype=core.uint8), None)
        size = core.tensor([-1 if error else data.numel()])
        self.run("broadcast", [size], root=root, label=label)
        _check_sizes([int(size.item())], [root], error)
        if self._rank != root:
            data = core.empty(int(size.item()), dtype=core.uint8)
        self.run("broadcast", [data], root=root, label=label)
        return _unpickled(data)

    def gather_objects(self, value: Any) -> list[Any]:
        """Gather the objects of all ranks by pickling, and return them as a list."""
        data, error = _pickled(value)
        sizes = [core.zeros(1, dtype=core.int64) for _ in range(self._size)]
        self.run("all_gather", [core.tensor([-1 if error else data.numel()])], sizes)
        _check_sizes([int(size.item()) for size in sizes], range(self._size), error)
        longest = max(int(size.item()) for size in sizes)
        padded = core.zeros(longest, dtype=core.uint8)
        padded[: data.numel()] = data
        parts = [core.empty(longest, dtype=core.uint8) for _ in range(self._size)]
        self.run("all_gather", [padded], parts)
        return [_unpickled(part[: int(size.item())]) for part, size in zip(parts, sizes, strict=True)]

    def abort(self, why: str = "the group was aborted") -> None:
        """Make pending and later operations of all ranks raise RuntimeError with the text `why`."""
        _C._abort_group(self._handle, why)

    def shutdown(self) -> None:
        """Leave the group. Ranks that are still waiting for this rank raise RuntimeError."""
        _C._close_group(self._handle)

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of collectives on this rank."""
        self._timeout = timeout
        _C._set_group_timeout(self._handle, timeout.total_seconds())


def _pickled(value: Any) -> tuple[Tensor, Exception | None]:
    """Pickle an object to a uint8 tensor. Return the tensor and the exception that pickling raised, or None."""
    try:
        return core.frombuffer(bytearray(pickle.dumps(value)), dtype=core.uint8), None
    except Exception as error:
        return core.empty(0, dtype=core.uint8), error


def _check_sizes(sizes: Sequence[int], ranks: Sequence[int], error: Exception | None) -> None:
    """Raise an error on every rank if one of `sizes` is -1, which means that the rank could not pickle its object.

    On that rank, raise `error`; on the other ranks, raise RuntimeError.
    """
    if error is not None:
        raise error
    for size, rank in zip(sizes, ranks, strict=True):
        if size < 0:
            raise RuntimeError(
                f"the object of rank {rank} cannot be pickled; the error is raised on that rank"
            )


def _unpickled(data: Tensor) -> Any:
    return pickle.loads(bytes(data.numpy()))
