"""Anomaly mode: which forward call is behind a gradient that fails or is NaN."""

from __future__ import annotations

from types import TracebackType

from rushlight_autograd._C import _get_anomaly, _set_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:  # noqa: N801
    """Switches anomaly mode on or off, at once; as a context manager, until its end.

    While it is on, every recorded operator remembers the calls that led to it, which makes recording slow, and an error in
    the backward pass shows them. With `check_nan` a gradient that contains NaN is such an error, of type RuntimeError.
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
    """Anomaly mode inside of a `with` block: see `set_detect_anomaly`."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._before = _get_anomaly()
        _set_anomaly(True, self._check_nan)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set_anomaly(*self._before)
