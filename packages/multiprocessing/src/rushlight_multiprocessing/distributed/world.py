"""The group of all processes, smaller groups of these processes, and functions that look up groups and ranks."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from rushlight_core.seams import collectives as seam

from .group import DEFAULT_TIMEOUT, ProcessGroup
from .stores import DistStoreError, FileStore, PrefixStore, Store, TCPStore

__all__ = [
    "Backend",
    "GroupMember",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_initialized",
    "new_group",
    "resolve",
]

_HINT = "Call init_process_group() first."


class Backend(str):
    """The names of backends, which transfer data between processes.

    This library provides only SHM. The other names are defined so that programs can compare backends with them.

    Example:
        >>> Backend.SHM, Backend.NCCL
        ('shm', 'nccl')
    """

    SHM = "shm"
    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"
    UCC = "ucc"
    UNDEFINED = "undefined"
    XCCL = "xccl"


class _World:
    default: ProcessGroup | None = None
    store: Store | None = None
    made: int = 0
    # For each group that contains this process, the ranks of its members in the group of all processes.
    ranks: dict[ProcessGroup, list[int]] = {}


class _Constants(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _World.default


class group(metaclass=_Constants):  # noqa: N801
    """A namespace for `group.WORLD`, which is the group of all processes, or None if there is no such group.

    Example:
        >>> group.WORLD is None
        True
    """


class GroupMember(metaclass=_Constants):
    """A namespace for `GroupMember.NON_GROUP_MEMBER`, which represents a group that this process is not in.

    Example:
        >>> get_rank(GroupMember.NON_GROUP_MEMBER)
        -1
    """

    NON_GROUP_MEMBER: object = -100


def is_initialized() -> bool:
    """Return whether the default group, the group of all processes, exists in this process.

    Example:
        >>> is_initialized()
        False
    """
    return _World.default is not None


def resolve(given: Any) -> ProcessGroup:
    """Return `given`, or the default group (the group of all processes) if `given` is None.

    Raises ValueError if the default group does not exist or the given group was destroyed, and TypeError if the argument is
    neither a group nor None.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> resolve(None) is dist.group.WORLD
        True
        >>> dist.destroy_process_group()
    """
    chosen = _World.default if given is None else given
    if chosen is None:
        raise ValueError(f"Default process group has not been initialized.\n{_HINT}")
    if not isinstance(chosen, ProcessGroup):
        raise TypeError(f"group: must be a ProcessGroup or None, got {type(chosen).__name__}")
    if chosen not in _World.ranks:
        raise ValueError("Invalid process group specified: it was destroyed or belongs to another process")
    return chosen


def get_rank(group: Any = None) -> int:
    """Return the rank of this process in a group, or -1 if the process is not in the group.

    Arguments:
        group: a group; None selects the group of all processes.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_rank()
        0
        >>> dist.destroy_process_group()
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else resolve(group).rank()


def get_world_size(group: Any = None) -> int:
    """Return the number of processes in a group, or -1 if this process is not in the group.

    Arguments:
        group: a group; None selects the group of all processes.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else resolve(group).size()


def get_backend(group: Any = None) -> str:
    """Return the name of a group's backend: "shm".

    Arguments:
        group: a group; None selects the group of all processes.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_backend()
        'shm'
        >>> dist.destroy_process_group()
    """
    return Backend(resolve(group).name())


def get_process_group_ranks(group: Any) -> list[int]:
    """Return the global ranks of a group's processes, that is, their ranks in the group of all processes.

    Arguments:
        group: a group; None selects the group of all processes.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_process_group_ranks(None)
        [0]
        >>> dist.destroy_process_group()
    """
    return list(_World.ranks[resolve(group)])


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Convert a rank in the group of all processes to the corresponding rank in `group`.

    Raises ValueError if the process is not in the group.

    Arguments:
        group: the group.
        global_rank: the rank in the group of all processes.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_group_rank(dist.new_group([0]), 0)
        0
        >>> dist.destroy_process_group()
    """
    ranks = _World.ranks[resolve(group)]
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group!r}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Convert a rank in `group` to the corresponding rank in the group of all processes.

    Raises ValueError if `group` does not contain the rank.

    Arguments:
        group: the group.
        group_rank: the rank in `group`.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_global_rank(dist.new_group([0]), 0)
        0
        >>> dist.destroy_process_group()
    """
    ranks = _World.ranks[resolve(group)]
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group!r}")
    return ranks[group_rank]


def _check_backend(backend: str | None) -> None:
    names = {part.split(":")[-1].strip().lower() for part in (backend or "shm").split(",")}
    unknown = names - {"shm", "gloo"}
    if unknown:
        raise ValueError(
            f"init_process_group(backend): {', '.join(sorted(unknown))} is not available; must be 'shm', shared "
            "memory between processes of one machine"
        )


def _from_environment(rank: int, world_size: int) -> tuple[str, int, int, int]:
    """Return the address, port, rank and world size that a launcher has set in the environment."""
    environment = os.environ
    wanted = {"MASTER_ADDR", "MASTER_PORT"}
    wanted |= ({"RANK"} if rank < 0 else set()) | ({"WORLD_SIZE"} if world_size < 0 else set())
    missing = sorted(wanted - environment.keys())
    if missing:
        raise ValueError(
            f"init_process_group(init_method='env://'): the environment variables {', '.join(missing)} are not set\n"
            "Use a launcher that sets them, or pass init_method='tcp://localhost:PORT' or 'file:///PATH', rank and "
            "world_size."
        )
    numbers = {}
    for name in (wanted | {"LOCAL_WORLD_SIZE"} & environment.keys()) - {"MASTER_ADDR"}:
        try:
            numbers[name] = int(environment[name])
        except ValueError:
            raise ValueError(
                f"init_process_group(): the environment variable {name} must be a number, got {environment[name]!r}"
            ) from None
    rank = numbers.get("RANK", rank)
    world_size = numbers.get("WORLD_SIZE", world_size)
    if numbers.get("LOCAL_WORLD_SIZE", world_size) != world_size:
        raise RuntimeError(
            f"init_process_group(): LOCAL_WORLD_SIZE={numbers['LOCAL_WORLD_SIZE']} of WORLD_SIZE={world_size} processes "
            "are on this machine; the backend shm connects processes of one machine"
        )
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        raise RuntimeError(
            "init_process_group(): torchrun runs its own store at MASTER_PORT, and its protocol is not supported\n"
            "Set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun, so that rank 0 runs the store."
        )
    return environment["MASTER_ADDR"], numbers["MASTER_PORT"], rank, world_size


def _check_rank(rank: int, world_size: int) -> None:
    if world_size < 1:
        raise ValueError(f"init_process_group(world_size): must be at least 1, got {world_size}")
    if not 0 <= rank < world_size:
        raise ValueError(f"init_process_group(rank): must be from 0 to {world_size - 1}, got {rank}")


def _rendezvous(url: str, rank: int, world_size: int, timeout: timedelta) -> tuple[Store, int, int]:
    parts = urlparse(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    if parts.scheme == "env":
        host, port, rank, world_size = _from_environment(rank, world_size)
    elif parts.scheme == "tcp":
        if not parts.hostname or parts.port is None:
            raise ValueError(f"init_process_group(init_method): {url!r} needs a host and a port")
        host, port = parts.hostname, parts.port
    elif parts.scheme == "file":
        if not parts.path:
            raise ValueError(f"init_process_group(init_method): {url!r} needs a path, as in file:///tmp/job")
        _check_rank(rank, world_size)
        return FileStore(parts.path, world_size), rank, world_size
    else:
        raise ValueError(
            f"init_process_group(init_method): must begin with env://, tcp:// or file://, got {url!r}"
        )
    _check_rank(rank, world_size)
    return TCPStore(host, port, world_size, rank == 0, timeout, wait_for_workers=False), rank, world_size


def _join(store: Store, rank: int, world_size: int, timeout: timedelta) -> ProcessGroup:
    return ProcessGroup(PrefixStore("default", store), "world", rank, world_size, timeout)


def _meet(url: str, rank: int, world_size: int, timeout: timedelta) -> tuple[Store, ProcessGroup]:
    """Join the group of all processes, using the store at a URL.

    A rank that restarts may connect to the store of the previous group, which rank 0 still serves, and lose the connection
    when that store ends. Ranks other than 0 therefore try again until the timeout."""
    end = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            store, own, size = _rendezvous(url, rank, world_size, timeout)
            return store, _join(store, own, size, timeout)
        except DistStoreError:
            serves = int(os.environ.get("RANK", rank)) == 0 if url.startswith("env:") else rank == 0
            if serves or time.monotonic() > end:
                raise
            time.sleep(0.02)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Create the group of all processes of a job on one machine, and wait until all processes have joined.

    Arguments:
        backend: "shm", which uses shared memory. None and "gloo" select "shm", too. Other names raise ValueError.
        init_method: how the processes connect: "env://" (the default) reads RANK, WORLD_SIZE, MASTER_ADDR and
            MASTER_PORT from the environment; "tcp://localhost:PORT", which rank 0 serves; "file:///PATH", a file that
            no earlier job has used.
        timeout: how long a collective waits for other ranks; by default 30 minutes.
        world_size, rank: the number of processes, and the rank of this process; not needed with "env://".
        store: a store that all processes use, in place of `init_method`.
        group_name: has no effect, as in PyTorch.
        pg_options: must be None; the backend has no options.
        device_id: must be None, because the backend has no devices.

    Raises ValueError for invalid arguments and RuntimeError if a process does not connect in time.

    Example::

        import rushlight.distributed as dist
        import rushlight.multiprocessing as mp

        def train(rank, world_size):
            dist.init_process_group("shm", init_method="tcp://localhost:29500", rank=rank, world_size=world_size)
            x = torch.tensor([float(rank)])
            dist.all_reduce(x)
            print(rank, x)  # the sum of all ranks
            dist.destroy_process_group()

        if __name__ == "__main__":
            mp.spawn(train, args=(2,), nprocs=2)
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    _check_backend(backend)
    if pg_options is not None or device_id is not None:
        raise ValueError("init_process_group(pg_options, device_id): must be None for the backend shm")
    if store is not None and init_method is not None:
        raise ValueError("init_process_group(): store and init_method are mutually exclusive")
    timeout = DEFAULT_TIMEOUT if timeout is None else timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"init_process_group(timeout): must be a datetime.timedelta, got {type(timeout).__name__}"
        )
    if store is None:
        store, made = _meet(init_method or "env://", rank, world_size, timeout)
    else:
        _check_rank(rank, world_size)
        made = _join(store, rank, world_size, timeout)
    _World.default = made
    _World.store = store
    _World.made = 0
    _World.ranks[made] = list(range(made.size()))
    seam.set_default_group(made)


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Create a group that contains some of the processes.

    All processes must create the same groups in the same order.

    Arguments:
        ranks: ranks in the group of all processes; None selects all processes.
        timeout: how long a collective of the group waits for other ranks; by default 30 minutes.
        backend: as for `init_process_group`.
        pg_options, device_id: must be None.
        use_local_synchronization: must be False: processes outside of the group must call this function, too, so that the
            number of groups is the same in all processes.
        group_desc: a description, which has no effect.
        sort_ranks: whether ranks in the group follow the order of the ranks in the group of all processes, rather
            than the order of `ranks`.

    Return the group, or `GroupMember.NON_GROUP_MEMBER` in a process that is not in the group.

    Raises ValueError for invalid arguments and NotImplementedError for `use_local_synchronization`.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> subgroup = dist.new_group([0])
        >>> dist.all_reduce(torch.ones(2), group=subgroup)
        >>> dist.destroy_process_group()
    """
    world = resolve(None)
    _check_backend(backend)
    if pg_options is not None or device_id is not None:
        raise ValueError("new_group(pg_options, device_id): must be None for the backend shm")
    if use_local_synchronization:
        raise NotImplementedError(
            "new_group(use_local_synchronization): must be False: every process must call new_group()"
        )
    chosen = list(range(world.size()) if ranks is None else ranks)
    if sort_ranks:
        chosen.sort()
    if len(set(chosen)) != len(chosen) or not chosen:
        raise ValueError(f"new_group(ranks): must contain at least one rank and no duplicates, got {ranks}")
    if not 0 <= min(chosen) <= max(chosen) < world.size():
        raise ValueError(f"new_group(ranks): must be from 0 to {world.size() - 1}, got {ranks}")
    # This detects ranks that do not call new_group(). Later calls do not check that the group is complete.
    world.run("barrier", label=f"new_group({chosen})")
    _World.made += 1
    if world.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    assert _World.store is not None
    name = f"{_World.made}/{'-'.join(map(str, chosen))}"
    made = ProcessGroup(
        PrefixStore("groups", _World.store),
        name,
        chosen.index(world.rank()),
        len(chosen),
        timeout or DEFAULT_TIMEOUT,
    )
    _World.ranks[made] = chosen
    return made


def destroy_process_group(group: Any = None) -> None:
    """Leave a group and free its memory.

    Pending collectives are finished first. Ranks that are still waiting for this rank raise RuntimeError.

    Arguments:
        group: a group; None selects all groups.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.destroy_process_group()
        >>> dist.is_initialized()
        False
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    chosen = resolve(group)
    if chosen is not _World.default:
        chosen.shutdown()
        del _World.ranks[chosen]
        return
    _leave()


def _leave() -> None:
    for made in list(_World.ranks):
        made.shutdown()
    _World.ranks.clear()
    _World.default = None
    seam.set_default_group(None)
    store, _World.store = _World.store, None
    if isinstance(store, TCPStore):
        store.close()


@atexit.register
def _at_exit() -> None:
    with contextlib.suppress(Exception):
        if _World.default is not None:
            _leave()
