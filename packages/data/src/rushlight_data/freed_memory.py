"""Configure the C library to keep the freed memory of samples, so that later samples can reuse this memory.

Note [Freed memory]
NumPy and Pillow allocate the arrays and images of samples with `malloc`. The GNU C library maps memory for each block of
128 KB or more and unmaps it when the block is freed, so that the memory of every sample causes page faults again. When a
mapped block is freed, the C library raises the limit of 128 KB to the size of the block. A program whose tensors are not
allocated with `malloc` rarely frees large blocks of `malloc`, so the limit remains at 128 KB. With the limit of 128 KB,
decoding a JPEG image of 500 x 375 pixels took 1.2 times as long as with the raised limit.

The limit is raised by allocating and freeing one block, which is never written to. `mallopt` is not used, because it would
override the environment variables of the C library, such as MALLOC_MMAP_THRESHOLD_. With other C libraries and allocators,
allocating and freeing a block has no effect.
"""

from __future__ import annotations

import ctypes
import functools

# The C library keeps freed blocks up to this size. It then returns memory at the end of the heap to the system only if more
# than twice this size is free.
KEPT_BYTES = 8 << 20


@functools.cache
def keep_freed_memory() -> None:
    """Configure the C library to keep freed blocks of up to `KEPT_BYTES` in this process. Later calls have no effect."""
    try:
        library = ctypes.CDLL(None)
        library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    except (OSError, AttributeError):
        return  # a platform whose C library cannot be opened in this way
    library.free(library.malloc(KEPT_BYTES))
