// Host memory for storages, and the interface by which another allocator can provide it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rushlight/export.h"

namespace rushlight {

namespace detail {

inline constexpr size_t kSmallGrain = 64;
inline constexpr size_t kSmallLimit = 4096;

struct FreeBlock {
    FreeBlock* next;
};

// Only the owning thread writes to a bin. Other threads read `count` for statistics, so it is stored with relaxed
// atomics.
struct SmallBin {
    FreeBlock* head;
    uint32_t count;
    // The maximum of `count`; zero for a thread that has no cache yet. A release into a full bin takes the slow path.
    uint32_t capacity;
};

// Bin i holds blocks of i * 64 bytes. Bin 0 has capacity zero and no block, so requests for zero bytes take the slow
// path. The slow path also reads the clock and returns unused memory; after a number of calls it is taken even if the
// bin has a block.
struct alignas(64) SmallCache {
    uint32_t calls_to_clock;
    alignas(16) SmallBin bins[kSmallLimit / kSmallGrain + 1];
};

// Never null: until a thread has its own cache, this points to a shared, empty cache of capacity zero. So the fast path
// needs no branch for new threads or for builds with a sanitizer, where the pointer is never replaced.
extern RL_API __thread SmallCache* small_cache RL_TLS_MODEL;

RL_API void* allocate_slow(size_t nbytes);
RL_API void release_slow(void* data, size_t nbytes) noexcept;

}  // namespace detail

/// Returns uninitialised memory aligned to 64 bytes, or nullptr for zero bytes. Raises OutOfMemory.
inline void* cpu_allocate(size_t nbytes) {
    if (__builtin_expect(nbytes <= detail::kSmallLimit, 1)) {
        detail::SmallCache* cache = detail::small_cache;
        detail::SmallBin& bin = cache->bins[(nbytes + detail::kSmallGrain - 1) / detail::kSmallGrain];
        detail::FreeBlock* block = bin.head;
        if (__builtin_expect(block != nullptr && --cache->calls_to_clock != 0, 1)) {
            bin.head = block->next;
            __atomic_store_n(&bin.count, bin.count - 1, __ATOMIC_RELAXED);
            return block;
        }
    }
    return detail::allocate_slow(nbytes);
}

/// Frees memory that `cpu_allocate(nbytes)` returned. May be called on any thread.
inline void cpu_release(void* data, size_t nbytes) noexcept {
    if (__builtin_expect(nbytes <= detail::kSmallLimit, 1)) {
        detail::SmallBin& bin =
            detail::small_cache->bins[(nbytes + detail::kSmallGrain - 1) / detail::kSmallGrain];
        if (__builtin_expect(bin.count < bin.capacity, 1)) {
            auto* block = static_cast<detail::FreeBlock*>(data);
            block->next = bin.head;
            bin.head = block;
            __atomic_store_n(&bin.count, bin.count + 1, __ATOMIC_RELAXED);
            return;
        }
    }
    detail::release_slow(data, nbytes);
}

// --- Interface for other allocators --------------------------------------------------------------

/// An allocator of host memory. `allocate` returns memory aligned to 64 bytes, or nullptr if no memory is left; it is
/// never called for zero bytes. Both functions may be called on any thread, and must not throw. The calling thread
/// holds no lock of this library. The struct and the object that `self` points to must outlive every block that was
/// allocated through them.
struct AllocatorInterface {
    uint32_t struct_size;
    void* self;
    void* (*allocate)(void* self, size_t nbytes);
    void (*release)(void* self, void* data, size_t nbytes);
};

/// Makes `allocator` serve all new storages and the scratch memory of kernels; nullptr stands for the default
/// allocator. Returns the previous allocator. Existing blocks are released by the allocator that allocated them.
RL_API const AllocatorInterface* set_allocator(const AllocatorInterface* allocator);

/// A block of memory, and the function that frees it. `release` is null if the block comes from the default allocator.
struct Allocation {
    void* data;
    void (*release)(void* self, void* data, size_t nbytes);
    void* self;
};

namespace detail {
extern RL_API std::atomic<const AllocatorInterface*> custom_allocator;
RL_API Allocation allocate_custom(const AllocatorInterface& allocator, size_t nbytes);
}  // namespace detail

/// Allocates memory for a storage. Uses the allocator that set_allocator has selected.
inline Allocation allocate(size_t nbytes) {
    const AllocatorInterface* custom = detail::custom_allocator.load(std::memory_order_acquire);
    if (__builtin_expect(custom != nullptr, 0)) return detail::allocate_custom(*custom, nbytes);
    return {cpu_allocate(nbytes), nullptr, nullptr};
}

inline void release(const Allocation& allocation, size_t nbytes) noexcept {
    if (__builtin_expect(allocation.release != nullptr, 0)) {
        allocation.release(allocation.self, allocation.data, nbytes);
    } else {
        cpu_release(allocation.data, nbytes);
    }
}

// --- Statistics and limits of the default allocator ------------------------------------------------

struct MemoryStatistics {
    uint64_t allocated_bytes, allocated_bytes_peak;  // the bytes of blocks that are in use
    // In blocks in use, and in released blocks that a device may still read.
    uint64_t active_bytes, active_bytes_peak;
    uint64_t reserved_bytes, reserved_bytes_peak;  // taken from the system
    // Numbers of blocks. Small blocks are counted only if they took the slow path.
    uint64_t allocation_count, release_count;
    uint64_t map_count, unmap_count;  // calls to the system
    // Numbers of requests that were repeated after the cache was emptied, and of requests that raised an error.
    uint64_t retry_count, failure_count;
    uint64_t limit_bytes;
};

RL_API MemoryStatistics memory_statistics();
RL_API void reset_peak_memory_statistics();

/// Returns a JSON description of all segments and blocks, for tools that visualize memory.
RL_API std::string memory_snapshot();

/// Returns every unused segment to the system.
RL_API void empty_cache();

/// Sets the limit of reserved memory; 0 restores the default, which is the smaller of the control group's limit and the
/// machine's memory. Returns the former limit.
RL_API uint64_t set_memory_limit(uint64_t nbytes);

}  // namespace rushlight
