"""Communication between processes on one machine: `torch.distributed` over shared memory.

    from rushlight_multiprocessing import distributed as dist

    dist.init_process_group("shm", init_method="tcp://localhost:29500", rank=rank, world_size=2)
    dist.all_reduce(tensor)
    dist.destroy_process_group()

If ranks call different operations, or the same operation with different dtypes or sizes, they raise an error
that shows the source lines of both calls. If a rank ends, the other ranks raise an error. Values are combined
in the order of the ranks, so results do not depend on timing.
"""

from .collectives import *  # noqa: F403
from .collectives import __all__ as _collectives
from .group import ProcessGroup, ReduceOp, Work
from .messages import *  # noqa: F403
from .messages import __all__ as _messages
from .object_collectives import *  # noqa: F403
from .object_collectives import __all__ as _object_collectives
from .stores import DistError, DistStoreError, FileStore, HashStore, PrefixStore, Store, TCPStore
from .world import (
    Backend,
    GroupMember,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
)


def is_available() -> bool:
    """Return True, because process groups are always available.

    Example:
        >>> torch.distributed.is_available()
        True
    """
    return True


__all__ = [
    *_collectives,
    *_messages,
    *_object_collectives,
    "Backend",
    "DistError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_initialized",
    "new_group",
]
