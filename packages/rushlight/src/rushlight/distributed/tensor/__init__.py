"""Tensors in parts over processes: there are none.

`DTensor` is there for `isinstance`, and making one raises RuntimeError. Placements say how such a tensor would lie;
libraries keep them in tables.
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
    """A tensor in parts over processes."""


class Placement:
    """How a tensor lies over the processes of one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether it is in parts along a dimension: `dim`, if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether it is whole in each process."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether the processes have parts of a reduction: `reduce_op`, if that is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """In parts along dimension `dim`."""

    dim: int


@dataclass(frozen=True, kw_only=True)
class _StridedShard(Shard):
    """In parts of a dimension that do not lie one behind the other."""

    split_factor: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Whole in each process."""


@dataclass(frozen=True)
class Partial(Placement):
    """As parts of a reduction."""

    reduce_op: str = "sum"
