"""Placeholders for iterable data pipes, which are not supported.

The class exists for `isinstance`; creating an instance raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe:
    """Pipeline that shuffles samples, for `isinstance`. There are no pipelines: creating one raises NotImplementedError.

    `DataLoader(shuffle=True)` shuffles a dataset.

    Example:
        >>> isinstance([1, 2], ShufflerIterDataPipe)
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "ShufflerIterDataPipe(): data pipes are not supported\nhint: DataLoader shuffles a dataset"
        )
