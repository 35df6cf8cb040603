"""Hooks that help to measure the time of communication."""

from __future__ import annotations

from typing import Any

from rushlight_core import Tensor
from rushlight_core.futures import Future
from rushlight_nn.layers.buckets import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """Return the gradients of this rank unchanged, to measure the time of a step without communication.

    Arguments:
        bucket: the gradients.

    Shape:
        - Result: (N), the shape of `bucket.buffer()`.

    Example::

        model.register_comm_hook(None, noop_hook)  # ranks no longer train equal models
    """
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future
