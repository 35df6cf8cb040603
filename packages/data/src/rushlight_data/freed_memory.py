"""Let the C library keep the memory that samples free, and use it for the next samples.

Note [Freed memory]
NumPy and Pillow allocate the arrays and images of samples with `malloc`. The GNU C library maps memory for each block of
128 KB or more, and returns it when the block is freed, so that every sample pays for the page faults of fresh memory. It
raises this limit to the size of the largest mapped block that was freed. Programs rarely do that by themselves if their
tensors have another allocator. Decoding a JPEG image of 500 x 375 pixels took 1.2 times as long with the initial limit.

The limit is raised by allocating and freeing one block, which is never written to, instead of by `mallopt`: so the
environment variables of the C library, such as MALLOC_MMAP_THRESHOLD_, keep their effect, and other C libraries and
allocators ignore it.
"""

from __future__ import annotations

import ctypes
import functools

# Blocks up to this size are kept. The C library then returns free memory at the end of the heap beyond twice this size.
KEPT_BYTES = 8 << 20


@functools.cache
def keep_freed_memory() -> None:
    """Let the C library keep freed blocks of up to `KEPT_BYTES` in this process. Calls after the first one do nothing."""
    try:
        library = ctypes.CDLL(None)
        library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    except (OSError, AttributeError):
        return  # a platform whose C library cannot be opened in this way
    library.free(library.malloc(KEPT_BYTES))
