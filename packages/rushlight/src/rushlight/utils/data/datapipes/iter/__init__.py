"""Placeholders for iterable data pipes. Data pipes are not supported.

The class exists only for `isinstance` checks; creating an instance raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe:
    """A placeholder for `isinstance` checks, which always return False.

    Creating an instance raises NotImplementedError. Use `DataLoader(shuffle=True)` to shuffle a dataset.

    Example:
        >>> isinstance([1, 2], ShufflerIterDataPipe)
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "ShufflerIterDataPipe(): data pipes are not supported\nhint: DataLoader shuffles a dataset"
        )
