"""Anomaly mode: find the forward call whose gradient raises an error or is NaN."""

from __future__ import annotations

from types import TracebackType

from rushlight_autograd._C import _get_anomaly, _set_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:  # noqa: N801
    """Turn anomaly mode on or off. As a context manager, restore the previous mode at the end of the block.

    In anomaly mode, every recorded operator stores its call stack, and an error in the backward pass shows
    the stack of the forward call. Anomaly mode makes recording slow.

    Args:
        mode: whether the mode is on.
        check_nan: raise RuntimeError for a gradient that contains NaN.

    Example:
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     x = torch.zeros(1, requires_grad=True)
        ...     (x / x).backward()
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _get_anomaly()
        _set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set_anomaly(*self._before)


class detect_anomaly:  # noqa: N801
    """A context manager within which anomaly mode is on; see :class:`set_detect_anomaly`.

    Args:
        check_nan: raise RuntimeError for a gradient that contains NaN.

    Example:
        >>> with torch.autograd.detect_anomaly(check_nan=False):
        ...     x = torch.zeros(1, requires_grad=True)
        ...     (x / x).backward()
        >>> x.grad
        tensor([nan])
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._before = _get_anomaly()
        _set_anomaly(True, self._check_nan)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set_anomaly(*self._before)
