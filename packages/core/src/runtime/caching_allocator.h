// The caching allocator of all devices. The allocators for host memory, CUDA and a test's fake device differ only in
// their drivers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "block_table.h"
#include "quick_blocks.h"
#include "recent_use.h"
#include "rushlight/allocator.h"
#include "rushlight/site.h"

namespace rushlight::detail {

/// Blocks of at least this size record the line of the program that allocated them.
inline constexpr size_t kSiteBytes = size_t{1} << 20;

/// The id of a queue of work on a device. 0 is the device's default stream, and the only stream of the host.
using StreamId = uint64_t;

/// The id of a pool, whose blocks are used by captured graphs: Note [Private pools]. 0 is the common memory.
using PoolId = uint64_t;

/// The functions of a device that the allocator calls. All functions except `now_ms` are called under the allocator's
/// lock, so they must not call the allocator.
class Driver {
  public:
    using Event = void*;

    virtual ~Driver() = default;
    /// Returns memory of the device, or nullptr if none is left.
    virtual void* map(size_t nbytes) noexcept = 0;
    virtual void unmap(void* data, size_t nbytes) noexcept = 0;
    /// Returns the physical memory of a range to the system but keeps the range's addresses, if the device supports
    /// this.
    virtual void discard(void*, size_t) noexcept {}
    virtual uint64_t now_ms() noexcept = 0;
    /// Whether other programs need the memory. If so, the allocator returns all unused memory before it takes `nbytes`
    /// more.
    virtual bool short_of_memory(size_t) noexcept { return false; }
    /// Returns the minimum time in milliseconds until other programs may need the memory, if the last call of
    /// `short_of_memory` returned false. The allocator calls `short_of_memory` again no later than when this
    /// time has passed.
    virtual uint64_t calm_ms() noexcept { return UINT64_MAX; }

    /// Places a mark after all work that is queued on the stream so far, and returns the mark. Called only for drivers
    /// with several streams.
    virtual Event record(StreamId) noexcept { return nullptr; }
    virtual bool reached(Event) noexcept { return true; }
    virtual void wait(Event) noexcept {}
    virtual void destroy(Event) noexcept {}
};

struct CachingConfig {
    size_t rounding = 512;  // block sizes are multiples of this power of two
    // Requests up to this size share segments of `small_segment` bytes.
    size_t small_limit = size_t{1} << 20;
    size_t small_segment = kPageSize;  // segments consist of whole pages
    // Requests up to this size use segments of `medium_segment` bytes; larger requests get a separate segment.
    size_t medium_limit = size_t{10} << 20;
    size_t medium_segment = 10 * kPageSize;
    uint64_t limit = UINT64_MAX;  // the limit of reserved bytes
};

/// See Note [Caching] in caching_allocator.cpp. Thread-safe.
class CachingAllocator {
  public:
    CachingAllocator(Driver& driver, const CachingConfig& config);
    ~CachingAllocator();
    CachingAllocator(const CachingAllocator&) = delete;
    CachingAllocator& operator=(const CachingAllocator&) = delete;

    /// Allocates memory for use on `stream`; nullptr if neither the cache nor the driver has enough.
    void* allocate(size_t nbytes, StreamId stream = 0) noexcept;
    /// Releases a block. Returns false if `data` is not the address of a live block of this allocator.
    [[nodiscard]] bool release(void* data) noexcept;
    /// Records that work on `stream`, which is not the block's own stream, uses the block. After its release, the block
    /// is reused only when that work is done.
    void record_use(void* data, StreamId stream) noexcept;

    /// From this call until `end_capture`, blocks for `stream` are allocated from `pool`.
    void begin_capture(PoolId pool, StreamId stream);
    void end_capture(PoolId pool) noexcept;
    /// Declares that no graph uses the pool any longer. The pool's free segments are returned to the driver
    /// immediately. Each remaining segment is returned when its last block is released.
    void retire(PoolId pool) noexcept;
    /// The pool to which a live block belongs. Returns 0 for the common memory, and also if there is no live block at
    /// `data`.
    PoolId pool_of(const void* data) noexcept;

    /// Returns to the driver all memory that has been unused for long enough at the time `now`. For callers that call
    /// `release` rarely.
    void tick(uint64_t now) noexcept;
    /// Returns all unused memory if the driver is short of `nbytes`.
    void make_room(size_t nbytes) noexcept;
    void empty_cache() noexcept;
    MemoryStatistics statistics() noexcept;
    void reset_peaks() noexcept;
    std::string snapshot();
    uint64_t set_limit(uint64_t nbytes) noexcept;
    /// Records the line of the program that allocated a block.
    void set_site(void* data, Site site) noexcept;
    /// Returns a text about the largest live blocks, for errors: "; the largest are 40.0 MiB (train.py:12), …". Returns
    /// "" if there are no such blocks.
    std::string largest_live(size_t count);

    /// Registers a thread's list of small blocks. Statistics do not count the blocks in the list: Note [Quick blocks].
    void add(QuickBlocks& list);
    /// Releases the blocks in the list. Called on the list's thread.
    void take_back(QuickBlocks& list) noexcept;
    void remove(QuickBlocks& list) noexcept;

    void before_fork() noexcept { mutex_.lock(); }
    void after_fork_in_parent() noexcept { mutex_.unlock(); }
    void after_fork_in_child() noexcept;

  private:
    struct Pool;

    struct Captured {
        StreamId stream;
        PoolId pool;
    };

    PoolId pool_for(StreamId stream) const;
    bool is_captured(PoolId pool) const;
    Pool& pool(StreamId stream, bool small);
    Block* find(Pool& pool, size_t size);
    Block* map_segment(Pool& pool, size_t size);
    Block* new_segment(Pool& pool, size_t nbytes);
    void split(Block* block, size_t size);
    bool release_locked(void* data, uint64_t now) noexcept;
    void hold_back(Block* block);
    size_t count_quick() noexcept;
    void make_free(Block* block, uint64_t now);
    std::span<Page> pages(const Block* block) const;
    size_t take_pages(const Block* block, uint64_t now);
    void release_pages(const Block* block, uint64_t now);
    Block* absorb(Block* left, Block* right);
    void list(Block* block);
    void unlist(Block* block);
    void unmap(Block* block);
    void unmap_unused(size_t wanted);
    void settle(bool wait, uint64_t now);
    void give_back_due(uint64_t now);
    void give_back_unused();
    void give_back_all(RecentUse::Choice* choice);
    std::span<Page> whole_pages(const Block* block) const;
    void give_back(Block* block, RecentUse::Choice* choice);
    void drop_inherited();

    Driver& driver_;
    const CachingConfig config_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Pool>> pools_;
    BlockTable live_;
    BlockStore store_;
    Segment* segments_ = nullptr;
    struct Pending {
        Driver::Event event;
        Block* block;
        StreamId stream;
    };
    std::deque<Pending> pending_;
    std::vector<Captured> captured_;  // the streams that are captured now
    std::vector<Block*> held_back_;  // blocks that are held back until the capture ends
    std::vector<QuickBlocks*> quick_;
    uint64_t limit_;
    RecentUse recent_use_;
    std::atomic<uint64_t> next_look_{0};  // time at which memory may be due to be returned
    bool inherited_unused_ = false;
    MemoryStatistics statistics_ = {};
};

}  // namespace rushlight::detail
