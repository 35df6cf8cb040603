"""Placeholders for fake tensors, which are PyTorch's tensors without values. Use the device "meta" instead."""

from __future__ import annotations

from typing import Any

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor:
    """Placeholder for `isinstance` checks of fake tensors. Creating an instance raises NotImplementedError.

    Tensors on the device "meta" have shapes and dtypes, but no values.

    Example:
        >>> isinstance(torch.empty(2, device="meta"), FakeTensor)
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "FakeTensor(): is not supported\nhint: tensors on the device 'meta' have only shapes and dtypes"
        )


def is_fake(x: Any) -> bool:
    """Return False: there are no fake tensors.

    Example:
        >>> is_fake(torch.empty(2, device="meta"))
        False
    """
    return False
