"""The memory of tensors, by the module that PyTorch has it in."""

from rushlight_core import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
