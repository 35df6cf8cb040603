"""Tensors that are sharded over processes. They are not supported.

`DTensor` exists for `isinstance`, and creating one raises RuntimeError. Placements describe how such a tensor would be
distributed. They can be created, because libraries store them in tables.
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
    """Tensor that is distributed over processes, for `isinstance`. Creating one raises RuntimeError.

    Example:
        >>> isinstance(torch.ones(2), torch.distributed.tensor.DTensor)
        False
    """


class Placement:
    """Base class of descriptions of how a tensor is distributed over one dimension of a mesh of processes.

    Example:
        >>> from rushlight.distributed.tensor import Replicate, Shard
        >>> Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_shard()
        (True, False, False)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether the tensor is divided along a dimension, or along `dim` if it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether each process has a term of a reduction, which must be `reduce_op` if that is given."""
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
    """Placement in which the part of each process is not contiguous in the divided dimension."""

    split_factor: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Placement that keeps the whole tensor in each process.

    Example:
        >>> torch.distributed.tensor.Replicate().is_replicate()
        True
    """


@dataclass(frozen=True)
class Partial(Placement):
    """Placement in which each process has a term of a reduction that `reduce_op` names.

    Example:
        >>> torch.distributed.tensor.Partial().is_partial("sum")
        True
    """

    reduce_op: str = "sum"
