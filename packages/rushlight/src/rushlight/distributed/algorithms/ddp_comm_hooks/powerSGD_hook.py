"""Hooks that send gradients as products of two thin matrices (PowerSGD, Vogels et al., 2019)."""

from __future__ import annotations

import logging
import math
from typing import Any

import rushlight_core as core
import rushlight_multiprocessing.distributed as dist
from rushlight_core import Tensor
from rushlight_core.futures import Future
from rushlight_nn.layers.buckets import GradBucket

from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_logger = logging.getLogger(__name__)


class PowerSGDState:
    """The state of `powerSGD_hook` and `batched_powerSGD_hook`: settings, and matrices of the last pass.

    Arguments:
        process_group: a group; None selects the group of all processes.
        matrix_approximation_rank: the number of columns of the two matrices.
        start_powerSGD_iter: the number of initial passes in which gradients are not compressed.
        min_compression_rate: a gradient is compressed only if the number of its elements, divided by the number of elements
            of its two matrices, is above this rate.
        use_error_feedback: whether the approximation error of a pass is added to the gradients of the next
            pass.
        warm_start: whether the approximation starts from the matrices of the previous pass instead of random
            matrices.
        orthogonalization_epsilon, batch_tensors_with_same_shape: have no effect, because each matrix is made orthogonal by a
            QR decomposition.
        random_seed: the seed of random matrices, which must be the same on all ranks.
        compression_stats_logging_frequency: number of passes between two entries in the log.

    Raises ValueError if `start_powerSGD_iter` is less than 2 and `use_error_feedback` or `warm_start` is true, or if
    `matrix_approximation_rank` is less than 1.

    Example:
        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        >>> state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10)
        >>> state.iter
        0
    """

    def __init__(
        self,
        process_group: dist.ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because "
                "PowerSGD can only be applied after the first two iterations in DDP."
            )
        if matrix_approximation_rank < 1:
            raise ValueError(
                f"PowerSGDState(matrix_approximation_rank): must be at least 1, got {matrix_approximation_rank}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.rng = core.Generator().manual_seed(random_seed)
        self.iter = 0
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[tuple[int, int], Tensor] = {}
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the process group, which is valid only in this process."""
        return {**self.__dict__, "process_group": None}

    def compression_stats(self) -> tuple[float, int, int]:
        """Return the compression rate, and the numbers of elements before and after compression."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Increase the count of passes if `bucket` is the last bucket of a pass.

        Arguments:
            bucket: the gradients.
        """
        if not bucket.is_last():
            return
        self.iter += 1
        if self.iter % self.compression_stats_logging_frequency == 0:
            _logger.info("PowerSGD: rate %.2f, from %d elements to %d", *self.compression_stats())


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Return the mean of the gradients over the ranks, with large gradients approximated by matrices of low rank.

    The hook waits until its collectives have ended, so that all ranks run them in the same order.

    Arguments:
        state: the settings, and the matrices of the previous pass.
        bucket: the gradients.

    Shape:
        - Result: (N), the shape of `bucket.buffer()`.

    Example::

        state = PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=10)
        model.register_comm_hook(state, powerSGD_hook)
    """
    return _hook(state, bucket, bucket.gradients)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Return the mean of the gradients over the ranks, with the whole bucket approximated as one square matrix of low rank.

    `batched_powerSGD_hook` sends fewer elements than `powerSGD_hook`, but approximates the gradients less
    accurately.

    Arguments:
        state: the settings, and the matrices of the previous pass.
        bucket: the gradients.

    Shape:
        - Result: (N), the shape of `bucket.buffer()`.

    Example::

        state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10)
        model.register_comm_hook(state, batched_powerSGD_hook)
    """
    return _hook(state, bucket, None)


def _hook(state: PowerSGDState, bucket: GradBucket, gradients: Any) -> Future[Tensor]:
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    buffer, index = bucket.buffer(), bucket.index()
    if state.use_error_feedback:
        if index in state.error_dict:
            buffer.add_(state.error_dict[index])
        before = buffer.clone()
    if gradients is None:
        side = math.isqrt(max(0, buffer.numel() - 1)) + 1
        square = core.zeros(side * side, dtype=buffer.dtype)
        square[: buffer.numel()].copy_(buffer)
        _approximate(state, index, [square.view(side, side)])
        buffer.copy_(square[: buffer.numel()])
    else:
        _approximate(state, index, gradients())
    if state.use_error_feedback:
        state.error_dict[index] = before.sub_(buffer)
    state.maybe_increase_iter(bucket)
    future: Future[Tensor] = Future()
    future.set_result(buffer)
    return future


def _approximate(state: PowerSGDState, index: int, tensors: list[Tensor]) -> None:
    """Replace each tensor in place by its mean over the processes, approximated where `_rank` is not 0."""
    whole: list[Tensor] = []
    matrices: list[Tensor] = []
    right: list[Tensor] = []
    for tensor in tensors:
        matrix = tensor.view(tensor.shape[0], -1) if tensor.dim() > 1 else None
        if matrix is not None and (rank := _rank(state, matrix)):
            right.append(_starting_matrix(state, (index, len(matrices)), matrix, rank))
            matrices.append(matrix)
        else:
            whole.append(tensor)
    state.total_numel_before_compression += sum(tensor.numel() for tensor in tensors)
    _average(state, whole)
    left = [matrix @ q for matrix, q in zip(matrices, right, strict=True)]
    _average(state, left)
    left = [_orthogonal(p) for p in left]
    right = [matrix.t() @ p for matrix, p in zip(matrices, left, strict=True)]
    _average(state, right)
    for number, (matrix, p, q) in enumerate(zip(matrices, left, right, strict=True)):
        core.mm(p, q.t(), out=matrix)
        state.q_memory_dict[index, number] = q


def _rank(state: PowerSGDState, matrix: Tensor) -> int:
    """Return the rank of the product that approximates a matrix, or 0 if it would save too few elements."""
    n, m = matrix.shape
    rank = min(n, m, state.matrix_approximation_rank)
    return rank if (n + m) * rank * state.min_compression_rate < n * m else 0


def _starting_matrix(state: PowerSGDState, key: tuple[int, int], matrix: Tensor, rank: int) -> Tensor:
    kept = state.q_memory_dict.get(key) if state.warm_start else None
    if kept is None or kept.shape != (matrix.shape[1], rank) or kept.dtype != matrix.dtype:
        kept = core.randn(matrix.shape[1], rank, generator=state.rng).to(matrix.dtype)
    return _orthogonal(kept)


def _orthogonal(matrix: Tensor) -> Tensor:
    """Return an orthonormal basis of the columns."""
    return core.linalg.qr(matrix.to(core.float32))[0].to(matrix.dtype)


def _average(state: PowerSGDState, tensors: list[Tensor]) -> None:
    """Replace tensors by their means over the processes, in one collective."""
    if not tensors:
        return
    flat = core.cat([tensor.reshape(-1) for tensor in tensors])
    state.total_numel_after_compression += flat.numel()
    dist.all_reduce(flat.div_(dist.get_world_size(state.process_group)), group=state.process_group)
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))
