"""Buckets of gradients for communication hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.futures import Future

from .._typing import Any, TypeAlias

__all__ = ["GradBucket"]


class GradBucket:
    """A bucket of gradients that `DistributedDataParallel` passes to the hook registered with `register_comm_hook`.

    Args:
        index: the index of the bucket in the backward pass.
        count: the number of buckets.
        buffer: the gradients of all parameters, flattened into one dimension.
        parameters: the parameters to which the gradients belong.

    Raises:
        ValueError: `buffer` and `parameters` differ in their number of elements.

    Shape:
        - `buffer`: (N), where N is the total number of elements of the parameters.

    Example:
        >>> weight = torch.ones(2, 2)
        >>> bucket = torch.distributed.GradBucket(0, 1, torch.arange(4.0), [weight])
        >>> bucket.gradients()
        [tensor([[0., 1.],
                [2., 3.]])]
        >>> bucket.is_last()
        True
    """

    def __init__(self, index: int, count: int, buffer: Tensor, parameters: Sequence[Tensor]) -> None:
        self._index = index
        self._count = count
        self._parameters = list(parameters)
        self.set_buffer(buffer)

    def index(self) -> int:
        """Return the index of the bucket. Bucket 0 contains the gradients that are computed first."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the gradients of all parameters as one tensor with one dimension."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """Return the gradients as views of `buffer()`, one for each parameter."""
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[Tensor]:
        """Return the parameters to which the gradients belong."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Return whether this is the last bucket of the backward pass."""
        return self._index == self._count - 1

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the tensor that contains the gradients. Raise ValueError if the number of elements differs.

        Args:
            buffer: a tensor with one dimension, of any dtype.
        """
        count = sum(parameter.numel() for parameter in self._parameters)
        if tuple(buffer.shape) != (count,):
            raise ValueError(
                f"GradBucket.set_buffer(buffer): must have the shape ({count},), got {tuple(buffer.shape)}"
            )
        self._buffer = buffer


CommHook: TypeAlias = Callable[[Any, GradBucket], Future[Tensor]]


def flatten(gradients: Sequence[Tensor]) -> Tensor:
    """Concatenate gradients of the same dtype into a new one-dimensional tensor."""
    with core.no_grad():
        return core.cat([gradient.detach().reshape(-1) for gradient in gradients])


def check_hook(hook: Any) -> None:
    """Raise an error if `hook` is not a valid communication hook."""
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    hints = getattr(hook, "__annotations__", {})
    if str(hints.get("bucket", "GradBucket")).rpartition(".")[2].strip("'>") != "GradBucket":
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    returned = hints.get("return", "Future[Tensor]")
    if returned is None or not ("Future" in str(returned) and "Tensor" in str(returned)):
        raise ValueError(
            "Communication hook: return annotation should be torch.futures.Future[torch.Tensor], "
            f"got {returned}"
        )
