"""The interface between providers of collective operations and the packages that use these operations.

A provider creates groups of processes; rushlight-multiprocessing is a provider that uses shared memory. The code that
initializes the group of all processes calls `set_default_group`. Code that needs the group calls `default_group`: for
example, a module that sums gradients, or a sampler that reads one rank's part of a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rushlight_core import Tensor

__all__ = ["Group", "Work", "default_group", "set_default_group"]


@runtime_checkable
class Work(Protocol):
    """A collective operation that has been started.

    Example::

        work = group.reduce_tensors([gradient], "AVG")
        compute()  # while other ranks have not arrived
        work.wait()
    """

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the operation has ended, and raise its error if it failed."""

    def is_completed(self) -> bool:
        """Return whether the operation has ended."""


@runtime_checkable
class Group(Protocol):
    """One rank's membership in a group of processes.

    Every rank calls the same methods in the same order. `label` is a text that must be the same on all ranks;
    it distinguishes similar operations. The tensors of a list are treated as one flat sequence of elements.
    Corresponding tensors have the same shape on all ranks.

    Example::

        group = default_group()
        if group is not None and group.size() > 1:
            group.broadcast_tensors(list(model.parameters()), root=0).wait()
    """

    def rank(self) -> int:
        """Return the rank of this process in the group."""

    def size(self) -> int:
        """Return the number of processes in the group."""

    def reduce_tensors(self, tensors: Sequence[Tensor], op: str = "SUM", label: str = "") -> Work:
        """Start an all-reduce ("SUM", "AVG", "MAX", …) of tensors of one dtype, in place."""

    def broadcast_tensors(self, tensors: Sequence[Tensor], root: int = 0, label: str = "") -> Work:
        """Start a broadcast, which overwrites the tensors of the other ranks with those of rank `root`."""

    def broadcast_object(self, value: Any, root: int = 0, label: str = "") -> Any:
        """Return the value that rank `root` passed as `value`. The value must be picklable."""

    def abort(self, why: str) -> None:
        """Make pending operations on other ranks, and all later operations, raise RuntimeError with the text `why`."""


_default: Group | None = None


def default_group() -> Group | None:
    """Return the group of all processes, or None before it is initialized.

    Example:
        >>> default_group() is None  # no group is initialized in this process
        True
    """
    return _default


def set_default_group(group: Group | None) -> None:
    """Set the group that `default_group` returns. Pass None after the group has been destroyed.

    Args:
        group: an object with the methods of :class:`Group`, or None.

    Example:
        >>> set_default_group(None)
        >>> default_group() is None
        True
    """
    global _default
    _default = group
