"""Tensors without values, which PyTorch's tracer makes: there are none. The device "meta" has tensors of shapes alone."""

from __future__ import annotations

from typing import Any

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor:
    """A tensor without values, for `isinstance`: there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "FakeTensor(): there is no tracer\nhint: tensors on the device 'meta' have shapes alone"
        )


def is_fake(x: Any) -> bool:
    """Return whether a tensor has no values for this reason: no."""
    return False
