"""The interface for host memory: it lets another allocator serve the storages of tensors.

An allocator is a C struct, `rushlight::AllocatorInterface` of rushlight/allocator.h, in a library that the process has
loaded; ctypes finds its address.
"""

from __future__ import annotations

from .. import _C

__all__ = ["set_allocator"]


def set_allocator(address: int | None) -> int | None:
    """Serve all new storages from the allocator at an address; None selects the default allocator.

    The memory of existing tensors belongs to the allocator that made it, so the struct and the objects that it refers to
    must outlive these tensors.

    Args:
        address: the address of a `rushlight::AllocatorInterface`; None for the default allocator.

    Returns:
        The former allocator's address, None for the default one.

    Raises:
        ValueError: the struct is of another version, or lacks functions.

    Example::

        import ctypes

        library = ctypes.CDLL("libmy_allocator.so")
        table = ctypes.addressof(ctypes.c_char.in_dll(library, "allocator"))
        former = set_allocator(table)
    """
    return _C._set_allocator(address)
