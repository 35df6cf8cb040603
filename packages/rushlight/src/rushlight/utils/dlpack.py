"""Exchange of tensors with other libraries, without a copy."""

from typing import Any

from rushlight_core import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule that shares the tensor's memory, for libraries that do not support `__dlpack__`.

    A capsule can be consumed only once.

    Shape:
        - `tensor`: (*), of any shape.

    Example:
        >>> capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
        >>> torch.utils.dlpack.from_dlpack(capsule)
        tensor([1., 1.])
    """
    return tensor.__dlpack__()
