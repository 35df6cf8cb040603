"""Futures, which hold results that another thread sets: rushlight_core.futures."""

from rushlight_core.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
