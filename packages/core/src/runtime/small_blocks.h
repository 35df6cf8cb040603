// Blocks of up to 4 KB. There is one size class for each multiple of 64 bytes. Blocks are cut from slabs of 64 KB and
// passed in batches to caches of the threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/allocator.h"

namespace rushlight::detail {

/// The slow path of the allocator of small blocks. The fast path, which uses the caches of the threads, is in
/// rushlight/allocator.h.
namespace small_blocks {

/// Refills the calling thread's bin if it is empty, and returns one block; returns nullptr if the system has no memory.
/// `now` is the time of the clock.
void* allocate(size_t nbytes, uint64_t now) noexcept;
/// Releases a block if its bin is full or its thread has no cache.
void release(void* data, size_t nbytes) noexcept;

/// Makes the calling thread read the clock at its next allocation.
void look_soon() noexcept;
/// Returns to the system all memory that has been unused for long enough at the time `now`.
void tick(uint64_t now) noexcept;
/// Returns the pages of all empty slabs to the system.
void give_back_unused() noexcept;
/// Called before memory is taken from the system. The caller holds no lock except the lock of this file. Returns false
/// if there is no memory.
extern bool (*before_mapping)(size_t nbytes) noexcept;

/// Returns the blocks in the calling thread's cache to the slabs, and unused regions to the system.
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
