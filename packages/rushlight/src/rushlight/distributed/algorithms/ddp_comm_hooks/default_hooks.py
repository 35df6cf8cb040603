"""Hooks for `DistributedDataParallel.register_comm_hook` that average gradients, which some hooks send in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_core as core
import rushlight_multiprocessing.distributed as dist
from rushlight_core import Tensor
from rushlight_core.futures import Future
from rushlight_nn.layers.buckets import GradBucket

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _mean(group: dist.ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    """Start a collective that replaces a tensor by its mean over the ranks, and return a future with the tensor."""
    tensor.div_(dist.get_world_size(group))
    work = dist.all_reduce(tensor, group=group, async_op=True)
    if work is None:
        raise RuntimeError(
            "communication hook: the process group in the hook's state does not contain this rank"
        )
    return work.get_future().then(lambda future: future.value()[0])


def _compressed_mean(
    group: dist.ProcessGroup | None, bucket: GradBucket, dtype: core.dtype
) -> Future[Tensor]:
    buffer = bucket.buffer()
    return _mean(group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def _compressing(hook: Hook, dtype: core.dtype) -> Hook:
    def compress(state: Any, bucket: GradBucket) -> Future[Tensor]:
        bucket.set_buffer(bucket.buffer().to(dtype))
        return hook(state, bucket).then(lambda future: bucket.buffer().copy_(future.value()))

    compress.__name__ = compress.__qualname__ = f"{getattr(hook, '__name__', type(hook).__name__)} in {dtype}"
    return compress


def allreduce_hook(process_group: dist.ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return the mean of the gradients over the ranks, as `DistributedDataParallel` does without a hook.

    Arguments:
        process_group: the hook's state, which is a group, or None for the group of all processes.
        bucket: the gradients.

    Shape:
        - Result: (N), the shape of `bucket.buffer()`.

    Example::

        model.register_comm_hook(None, allreduce_hook)
    """
    return _mean(process_group, bucket.buffer())


def fp16_compress_hook(process_group: dist.ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return the mean of the gradients over the ranks. The gradients are sent as float16.

    Arguments:
        process_group: the hook's state, which is a group, or None for the group of all processes.
        bucket: the gradients.

    Shape:
        - Result: (N), the shape of `bucket.buffer()`.

    Example::

        model.register_comm_hook(None, fp16_compress_hook)
    """
    return _compressed_mean(process_group, bucket, core.float16)


def bf16_compress_hook(process_group: dist.ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return the mean of the gradients over the ranks. The gradients are sent as bfloat16.

    Arguments:
        process_group: the hook's state, which is a group, or None for the group of all processes.
        bucket: the gradients.

    Shape:
        - Result: (N), the shape of `bucket.buffer()`.

    Example::

        model.register_comm_hook(None, bf16_compress_hook)
    """
    return _compressed_mean(process_group, bucket, core.bfloat16)


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that converts the gradients to float16 and passes them to `hook`.

    Arguments:
        hook: the hook that reduces the converted gradients.

    Example::

        model.register_comm_hook(state, fp16_compress_wrapper(powerSGD_hook))
    """
    return _compressing(hook, core.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that converts the gradients to bfloat16 and passes them to `hook`.

    Arguments:
        hook: the hook that reduces the converted gradients.

    Example::

        model.register_comm_hook(state, bf16_compress_wrapper(powerSGD_hook))
    """
    return _compressing(hook, core.bfloat16)
