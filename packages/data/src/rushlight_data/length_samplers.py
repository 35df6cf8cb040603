"""Samplers of batches whose samples have similar lengths, which keeps the padding small."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import rushlight_core as core

from .random_streams import generator_of
from .sampler import _require_bool, _require_positive, _Seeded

__all__ = ["BucketBatchSampler", "TokenBatchSampler"]


class _LengthBatches(_Seeded):
    """Base class of samplers that group samples of similar lengths into batches. A seed determines the order."""

    lengths: core.Tensor

    def __init__(self, lengths: Sequence[int] | core.Tensor, shuffle: bool, generator: Any) -> None:
        name = type(self).__name__
        _require_bool(name, "shuffle", shuffle)
        self.lengths = core.as_tensor(lengths)
        if self.lengths.numel() == 0:
            self.lengths = self.lengths.to(core.int64)
        if self.lengths.dim() != 1 or self.lengths.is_floating_point() or self.lengths.dtype == core.bool:
            raise ValueError(
                f"{name}(lengths): must be one integer per sample, got {self.lengths.dtype} of shape "
                f"{tuple(self.lengths.shape)}"
            )
        if self.lengths.numel() and int(self.lengths.min()) < 0:
            raise ValueError(f"{name}(lengths): must not be negative, got {int(self.lengths.min())}")
        self.shuffle = shuffle
        self.generator = generator

    def _order(self, seed: int, start: int) -> Iterator[Any]:
        generator = generator_of(seed)
        count = self.lengths.numel()
        order = core.randperm(count, generator=generator) if self.shuffle else core.arange(count)
        batches = self._batches(order)
        if self.shuffle:
            which = core.randperm(len(batches), generator=generator).tolist()
            batches = [batches[i] for i in which]
        return itertools.islice(batches, start, None)

    def _batches(self, order: core.Tensor) -> list[list[int]]:
        raise NotImplementedError

    def _by_length(self, indices: core.Tensor) -> core.Tensor:
        return indices[core.argsort(self.lengths[indices], stable=True)]


class BucketBatchSampler(_LengthBatches):
    """A sampler of batches of `batch_size` indices whose samples have similar lengths.

    The indices are shuffled and divided into buckets. Each bucket is sorted by length and cut into batches, and the
    batches are shuffled.

    Arguments:
        lengths: the length of each sample: a sequence of integers or a tensor of shape (N).
        batch_size: number of indices per batch.
        bucket_size: number of indices per bucket, a multiple of `batch_size`. Larger buckets lead to less
            padding and less randomness. By default, `bucket_size` is `100 * batch_size`.
        shuffle: whether to shuffle; if False, the buckets contain the indices in the order of the dataset.
        drop_last: whether to drop the last batch if it has fewer than `batch_size` indices.
        generator: the generator from which the seed is drawn; None selects the default generator.

    Raises TypeError or ValueError for arguments of the wrong type or value.

    Example:
        >>> list(BucketBatchSampler([5, 1, 4, 2], batch_size=2, shuffle=False))
        [[1, 3], [2, 0]]
    """

    def __init__(
        self,
        lengths: Sequence[int] | core.Tensor,
        batch_size: int,
        *,
        bucket_size: int | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        generator: Any = None,
    ) -> None:
        super().__init__(lengths, shuffle, generator)
        _require_positive("BucketBatchSampler", "batch_size", batch_size)
        _require_bool("BucketBatchSampler", "drop_last", drop_last)
        bucket_size = 100 * batch_size if bucket_size is None else bucket_size
        _require_positive("BucketBatchSampler", "bucket_size", bucket_size)
        if bucket_size % batch_size:
            raise ValueError(
                f"BucketBatchSampler(bucket_size): must be a multiple of batch_size={batch_size}, got {bucket_size}"
            )
        self.batch_size = batch_size
        self.bucket_size = bucket_size
        self.drop_last = drop_last

    def _batches(self, order: core.Tensor) -> list[list[int]]:
        batches: list[list[int]] = []
        for begin in range(0, order.numel(), self.bucket_size):
            indices = self._by_length(order[begin : begin + self.bucket_size]).tolist()
            batches += (indices[i : i + self.batch_size] for i in range(0, len(indices), self.batch_size))
        return batches[: len(self)]

    def __len__(self) -> int:
        n = self.lengths.numel()
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class TokenBatchSampler(_LengthBatches):
    """A sampler of batches that have at most `max_tokens` elements after padding.

    The indices are sorted by length, and indices of equal length are in random order. Each batch contains as
    many indices as possible such that the batch size times the largest length is at most `max_tokens`. The
    batches are shuffled.

    Arguments:
        lengths: the length of each sample: a sequence of integers or a tensor of shape (N).
        max_tokens: the maximum number of elements in a padded batch.
        max_batch_size: the maximum number of indices in a batch; by default, there is no limit.
        shuffle: whether to shuffle; if False, the batches are in ascending order of length.
        generator: the generator from which the seed is drawn; None selects the default generator.

    Raises TypeError or ValueError for arguments of the wrong type or value, such as a sample that is longer than
    `max_tokens`.

    Example:
        >>> list(TokenBatchSampler([5, 1, 4, 2, 2], max_tokens=6, shuffle=False))
        [[1, 3, 4], [2], [0]]
    """

    def __init__(
        self,
        lengths: Sequence[int] | core.Tensor,
        max_tokens: int,
        *,
        max_batch_size: int | None = None,
        shuffle: bool = True,
        generator: Any = None,
    ) -> None:
        super().__init__(lengths, shuffle, generator)
        _require_positive("TokenBatchSampler", "max_tokens", max_tokens)
        if max_batch_size is not None:
            _require_positive("TokenBatchSampler", "max_batch_size", max_batch_size)
        self.max_tokens = max_tokens
        self.max_batch_size = max_batch_size
        self._ends = self._cut(core.sort(self.lengths).values.tolist())

    def _cut(self, lengths: list[int]) -> list[int]:
        """Divide sorted lengths into batches, and return the position after the last length of each batch."""
        if lengths and lengths[-1] > self.max_tokens:
            raise ValueError(
                f"TokenBatchSampler(max_tokens): must be at least the length of every sample, got {self.max_tokens}, "
                f"but sample {int(self.lengths.argmax())} has length {lengths[-1]}"
            )
        ends, begin = [], 0
        for i, length in enumerate(lengths):
            size = i - begin
            if size and ((size + 1) * length > self.max_tokens or size == self.max_batch_size):
                ends.append(i)
                begin = i
        return [*ends, len(lengths)] if lengths else []

    def _batches(self, order: core.Tensor) -> list[list[int]]:
        indices = self._by_length(order).tolist()
        begins = [0, *self._ends]
        return [indices[begin:end] for begin, end in zip(begins, self._ends, strict=False)]

    def __len__(self) -> int:
        return len(self._ends)
