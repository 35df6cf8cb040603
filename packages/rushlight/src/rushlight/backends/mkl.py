"""Intel's MKL: not used; matrix products are oneDNN's, linear algebra is LAPACK's."""

from __future__ import annotations

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Return whether it is used: no."""
    return False


class verbose:  # noqa: N801
    """What it would print of its calls: nothing, it is not used."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *error: object) -> None:
        pass
