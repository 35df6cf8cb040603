// A list of the small blocks of a device that a thread released most recently. The thread reuses them for its next
// allocations.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rushlight::detail {

// Note [Quick blocks]
// An operator that is queued on a device allocates its result, and another result is usually released soon afterwards.
// The lock of the caching allocator, and its joining and splitting of blocks, would cost as much as the rest of the
// call. Therefore each thread keeps some of the small blocks of each size that it has released, and reuses them without
// a lock. The allocator treats these blocks as live, but does not count them in its statistics.
//
// A block in such a list skips all the work that the allocator does at a release. So the lists are used only while the
// process uses only default streams: then there is no other stream to wait for, and no pool of a graph.
//
// A thread returns its blocks when it ends, when it empties the cache, when no memory is left, and once there are
// several streams. Other threads cannot take these blocks: an idle thread keeps up to `kBytes` for each device.

/// The list of one thread for one allocator. Only that thread calls `take`, `put` and `drain`.
class QuickBlocks {
  public:
    static constexpr size_t kGrain = 512;  // the allocator rounds sizes to multiples of this
    static constexpr size_t kLimit = 8192;  // larger blocks are not kept
    static constexpr size_t kBytes = size_t{128} << 10;

    /// Returns a block for `nbytes` bytes, or null if the list has no such block. `nbytes` must be from 1 to kLimit.
    void* take(size_t nbytes) noexcept {
        Bin& bin = bins_[(nbytes - 1) / kGrain];
        if (bin.count == 0) return nullptr;
        const size_t left = bytes() - size_of(nbytes);
        bytes_.store(left, std::memory_order_relaxed);
        if (left < least_.load(std::memory_order_relaxed)) least_.store(left, std::memory_order_relaxed);
        return bin.blocks[--bin.count];
    }
    /// Keeps a block that was allocated with `nbytes`; returns false if there is no room.
    bool put(void* data, size_t nbytes) noexcept {
        Bin& bin = bins_[(nbytes - 1) / kGrain];
        const size_t held = bytes() + size_of(nbytes);
        if (bin.count == kKeep || held > kBytes) return false;
        bytes_.store(held, std::memory_order_relaxed);
        bin.blocks[bin.count++] = data;
        return true;
    }
    /// Calls `give` with every block, and empties the list.
    template <class F>
    void drain(F&& give) {
        for (Bin& bin : bins_)
            while (bin.count > 0) give(bin.blocks[--bin.count]);
        bytes_.store(0, std::memory_order_relaxed);
        least_.store(0, std::memory_order_relaxed);
    }

    /// The number of bytes in the list. May be called on any thread.
    size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// The smallest number of bytes in the list since the last call. May be called on any thread, but is exact only on
    /// the thread that owns the list.
    size_t least_since() noexcept {
        const size_t least = least_.load(std::memory_order_relaxed);
        least_.store(bytes(), std::memory_order_relaxed);
        return least;
    }

  private:
    static constexpr uint32_t kKeep = 15;
    static size_t size_of(size_t nbytes) { return (nbytes + kGrain - 1) / kGrain * kGrain; }

    struct Bin {
        uint32_t count;
        void* blocks[kKeep];
    };
    std::atomic<size_t> bytes_{0}, least_{0};
    std::array<Bin, kLimit / kGrain> bins_ = {};
};

}  // namespace rushlight::detail
