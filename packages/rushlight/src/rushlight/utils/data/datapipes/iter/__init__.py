"""Pipelines that are iterated: there are none.

The class is there for `isinstance`; making an instance raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe:
    """A pipeline that shuffles."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "ShufflerIterDataPipe(): there are no pipelines\nhint: DataLoader shuffles a dataset"
        )
