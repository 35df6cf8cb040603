// Blocks of up to 4 KB: 64-byte classes carved from 64 KB slabs, handed out in batches to per-thread caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/allocator.h"

namespace rushlight::detail {

/// The slow half of the small allocator. The fast half, per thread, is in rushlight/allocator.h.
namespace small_blocks {

/// Refills the calling thread's bin if it is empty, and returns one block; nullptr when the system has no
/// memory. `now` is the clock's time.
void* allocate(size_t nbytes, uint64_t now) noexcept;
/// Releases a block whose bin is full, or whose thread has no cache.
void release(void* data, size_t nbytes) noexcept;

/// The calling thread reads the clock at its next allocation.
void look_soon() noexcept;
/// Returns memory that is due at this time to the system.
void tick(uint64_t now) noexcept;
/// Gives the pages of all empty slabs back.
void give_back_unused() noexcept;
/// Called, without any lock but this file's, before memory is taken from the system; false where there is none.
extern bool (*before_mapping)(size_t nbytes) noexcept;

/// Returns the calling thread's cache and gives unused regions back to the system.
void empty_cache() noexcept;

struct Usage {
    uint64_t allocated_bytes, reserved_bytes, map_count, unmap_count, refill_count, flush_count;
};
Usage usage() noexcept;

void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace small_blocks
}  // namespace rushlight::detail
