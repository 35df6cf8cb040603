"""Tensors that are sharded over processes. Sharded tensors are not supported.

`DTensor` exists only for `isinstance` checks; creating one raises RuntimeError. Placements describe how a
`DTensor` would be distributed. Instances of placements can be created, because libraries define tables of
placements.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.distributed._absent import Absent as _Absent
from rushlight.distributed._absent import refused as _refused
from rushlight.distributed.device_mesh import DeviceMesh

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor"]

distribute_tensor = _refused("tensor.distribute_tensor")
compute_local_shape_and_global_offset = _refused("tensor.compute_local_shape_and_global_offset")


class DTensor(_Absent):
    """A placeholder for `isinstance` checks, which are always False. Creating an instance raises RuntimeError.

    Example:
        >>> isinstance(torch.ones(2), torch.distributed.tensor.DTensor)
        False
    """


class Placement:
    """Base class of placements, which distribute a tensor over one dimension of a device mesh.

    Example:
        >>> from rushlight.distributed.tensor import Replicate, Shard
        >>> Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_shard()
        (True, False, False)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether the tensor is divided along dimension `dim`, or along any dimension if `dim` is None."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether each process has a partial result of `reduce_op` (of any reduction by default)."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Placement that divides a tensor along dimension `dim`, with one part for each process.

    Example:
        >>> torch.distributed.tensor.Shard(1)
        Shard(dim=1)
    """

    dim: int


@dataclass(frozen=True, kw_only=True)
class _StridedShard(Shard):
    """Placement that divides a tensor along dimension `dim` so that the part of each process is not contiguous."""

    split_factor: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Placement in which each process has a copy of the whole tensor.

    Example:
        >>> torch.distributed.tensor.Replicate().is_replicate()
        True
    """


@dataclass(frozen=True)
class Partial(Placement):
    """Placement in which each process has a partial result; the tensor is the reduction of all parts by `reduce_op`.

    Example:
        >>> torch.distributed.tensor.Partial().is_partial("sum")
        True
    """

    reduce_op: str = "sum"
