"""The interface by which another allocator can provide the host memory of tensors.

An allocator is a C struct, `rushlight::AllocatorInterface` of rushlight/allocator.h, in a library that the process has
loaded. ctypes can find the address of the struct.
"""

from __future__ import annotations

from .. import _C

__all__ = ["set_allocator"]


def set_allocator(address: int | None) -> int | None:
    """Allocate all new storages with the allocator at an address; None selects the default allocator.

    Existing tensors are freed by the allocator that allocated them, so its struct and the objects to which the struct refers
    must outlive these tensors.

    Args:
        address: the address of a `rushlight::AllocatorInterface`; None for the default allocator.

    Returns:
        The address of the former allocator; None for the default allocator.

    Raises:
        ValueError: the version of the struct is not supported, or the struct lacks a function.

    Example::

        import ctypes

        library = ctypes.CDLL("libmy_allocator.so")
        table = ctypes.addressof(ctypes.c_char.in_dll(library, "allocator"))
        former = set_allocator(table)
    """
    return _C._set_allocator(address)
