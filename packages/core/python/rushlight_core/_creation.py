"""Tensors from numbers, sequences, arrays and buffers."""

from __future__ import annotations

from . import _C

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor, dtype


def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`, a number or nested sequences of numbers."""
    made = _C._from_sequence(data, dtype)
    return made.requires_grad_() if requires_grad else made
