"""Intel's MKL, which is not used: core has its own kernels for matrix products, and LAPACK computes linear algebra."""

from __future__ import annotations

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Return False: MKL is not used.

    Example:
        >>> torch.backends.mkl.is_available()
        False
    """
    return False


class verbose:  # noqa: N801
    """Context manager that has no effect: MKL is not used. In PyTorch, `verbose` prints the calls of MKL.

    Args:
        enable: has no effect.

    Example:
        >>> with torch.backends.mkl.verbose(1):
        ...     _ = torch.ones(2, 2) @ torch.ones(2, 2)
    """

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *error: object) -> None:
        pass
