"""Select how `scaled_dot_product_attention` is computed: by a fused kernel or by separate operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Implementations of attention, for `sdpa_kernel`.

    FLASH_ATTENTION and EFFICIENT_ATTENTION select the same fused kernel. MATH computes attention by matrix
    products and a softmax. CUDNN_ATTENTION and OVERRIDEABLE are accepted, but have no implementation.

    Example:
        >>> torch.nn.attention.SDPBackend.MATH.name
        'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Context manager or decorator that restricts attention to the given implementations, in all threads.

    Args:
        backends: one or several implementations. If both the fused kernel and MATH can compute a call, the
            fused kernel is used.
        set_priority: whether to use the first of the `backends` that can compute a call. With
            `set_priority=True`, implementations after MATH are never used, because MATH can compute all
            calls.

    Raises:
        TypeError: an element of `backends` is not a member of SDPBackend.

    Example:
        >>> from rushlight.nn.attention import SDPBackend, sdpa_kernel
        >>> q = torch.ones(1, 2, 3, 4)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     F.scaled_dot_product_attention(q, q, q).shape
        torch.Size([1, 2, 3, 4])
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    for backend in chosen:
        if not isinstance(backend, SDPBackend):
            raise TypeError(
                f"sdpa_kernel(backends): needs members of SDPBackend, got {type(backend).__name__}"
            )
    from rushlight.backends import cuda

    fused = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)
    if set_priority and SDPBackend.MATH in chosen:
        before_math = chosen[: chosen.index(SDPBackend.MATH)]
        chosen = [b for b in chosen if b not in fused or b in before_math]
    with cuda.sdp_kernel(
        enable_flash=SDPBackend.FLASH_ATTENTION in chosen,
        enable_math=SDPBackend.MATH in chosen,
        enable_mem_efficient=SDPBackend.EFFICIENT_ATTENTION in chosen,
        enable_cudnn=SDPBackend.CUDNN_ATTENTION in chosen,
    ):
        yield
