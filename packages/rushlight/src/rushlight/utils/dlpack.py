"""Exchange of tensors with other libraries, without a copy."""

from typing import Any

from rushlight_core import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule of the tensor's memory, for libraries that know no `__dlpack__`; it can be taken once."""
    return tensor.__dlpack__()
