#include "small_blocks.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

#include "pages.h"
#include "recent_use.h"

// Note [Small blocks]
// A region is 2 MiB of memory at a multiple of 2 MiB. The address of a block therefore determines its region by a mask
// and its slab by a shift. The first bytes of a region contain the descriptors of its 32 slabs. A slab serves one size
// class until all its blocks have been returned, and then any class. One mutex guards all data here; this suffices
// because threads take blocks in batches.
//
// Empty slabs return their pages like other unused memory: Note [How long memory is kept]. There is no thread for this.
// Instead, each thread reads the clock at every 32nd allocation, or more often while allocations are rare: after a pause at
// the next allocation, then after 1, 2, 4 ... allocations. So the clock is also read in a program that makes a few small
// allocations once in a while. `SmallCache::calls_to_clock` counts the allocations on the fast path.
//
// After a fork, the child should not write to memory that it shares with its parent, because each such write copies a
// page. So it discards all free blocks and sets the capacity of its bins to zero. Then every release calls `release`
// below, which recognises a block of an inherited region by the region's generation and drops it. The fast path needs
// no additional check.

namespace rushlight::detail {

namespace {

constexpr size_t kClasses = kSmallLimit / kSmallGrain + 1;
constexpr size_t kRegionSize = kHugePage;
constexpr size_t kSlabSize = size_t{64} << 10;
constexpr size_t kSlabs = kRegionSize / kSlabSize;

struct Region;

struct Slab {
    FreeBlock* free;        // returned blocks
    uint32_t free_count;    // length of `free`
    uint32_t carved;        // number of blocks allocated at least once
    uint32_t capacity;      // number of blocks that fit
    uint32_t size_class;    // 0: the slab is empty
    // Neighbours in the list of slabs of the class that have free blocks, or in the list of empty slabs.
    Slab *previous, *next;
    char* start;
    uint64_t taken_ms, emptied_ms;
    bool resident;  // whether it has been used since its pages were mapped or discarded

    bool exhausted() const { return free == nullptr && carved == capacity; }
    bool unused() const { return free_count == carved; }
};

struct Region {
    uint64_t generation;
    Region *previous, *next;
    uint32_t used_slabs;
    Slab slabs[kSlabs];
};
constexpr size_t kHeader = (sizeof(Region) + kSmallGrain - 1) / kSmallGrain * kSmallGrain;

Region* region_of(const void* data) {
    return reinterpret_cast<Region*>(reinterpret_cast<uintptr_t>(data) & ~(kRegionSize - 1));
}
Slab* slab_of(const void* data) {
    return &region_of(data)->slabs[(reinterpret_cast<uintptr_t>(data) & (kRegionSize - 1)) / kSlabSize];
}

template <class Node>
void push(Node*& list, Node* node) {
    node->previous = nullptr;
    node->next = list;
    if (list) list->previous = node;
    list = node;
}
template <class Node>
void unlink(Node*& list, Node* node) {
    (node->previous ? node->previous->next : list) = node->next;
    if (node->next) node->next->previous = node->previous;
}

struct ThreadCache : SmallCache {
    uint64_t looked_ms;  // the time at which the thread last read the clock
    uint32_t calls_between_looks;
    ThreadCache *previous, *next;
};

// The number of blocks of a size class that a thread may keep for a long time.
constexpr uint32_t lasting_capacity(size_t size_class) {
    return std::clamp<uint32_t>(static_cast<uint32_t>(kSlabSize / (size_class * kSmallGrain)), 16, 256);
}
// Nodes of graphs and tensors use blocks of up to 256 bytes. A bin of that size can hold all blocks that a pass through
// a thousand operators releases at its end, so that the next pass takes no blocks from the slabs. `trim` returns the
// blocks beyond lasting_capacity.
constexpr size_t kLargeBins = 4;
constexpr uint32_t bin_capacity(size_t size_class) {
    return size_class <= kLargeBins ? 1024 : lasting_capacity(size_class);
}

struct Center {
    std::mutex mutex;
    Slab* available[kClasses] = {};
    Slab* empty = nullptr;
    Region* regions = nullptr;
    ThreadCache* threads = nullptr;
    uint64_t generation = 1;  // the generation of the process; incremented in the child of a fork
    uint64_t handed_out_bytes = 0;
    RecentUse recent_use;
    std::atomic<uint64_t> next_look_ms = 0;
    small_blocks::Usage counters = {};

    FreeBlock* take(size_t size_class, uint32_t wanted, uint32_t& got, uint64_t now);
    void put(FreeBlock* blocks, size_t size_class);
    Slab* fresh_slab(size_t size_class, uint64_t now);
    void retire(Slab* slab, uint64_t now);
    void give_back_due(uint64_t now);
    void give_back(RecentUse::Choice* choice);
    void unmap_region(Region* region);
    bool inherited(const void* data) const { return region_of(data)->generation != generation; }
};

// Never destroyed, because the static destructors of other code may still release blocks.
Center& center() {
    alignas(Center) static char storage[sizeof(Center)];
    static Center* instance = new (storage) Center;
    return *instance;
}

Slab* Center::fresh_slab(size_t size_class, uint64_t now) {
    if (!empty) {
        if (small_blocks::before_mapping && !small_blocks::before_mapping(kRegionSize)) return nullptr;
        auto* region = static_cast<Region*>(map_pages(kRegionSize, false));
        if (!region) return nullptr;
        new (region) Region{};
        region->generation = generation;
        push(regions, region);
        ++counters.map_count;
        counters.reserved_bytes += kRegionSize;
        for (size_t i = kSlabs; i-- > 0;) {
            region->slabs[i].start = reinterpret_cast<char*>(region) + (i == 0 ? kHeader : i * kSlabSize);
            push(empty, &region->slabs[i]);
        }
    }
    Slab* slab = empty;
    unlink(empty, slab);
    size_t room = kSlabSize - (slab == &region_of(slab)->slabs[0] ? kHeader : 0);
    slab->free = nullptr;
    slab->free_count = slab->carved = 0;
    slab->size_class = static_cast<uint32_t>(size_class);
    slab->capacity = static_cast<uint32_t>(room / (size_class * kSmallGrain));
    if (slab->resident) {
        recent_use.used_again(kSlabSize, slab->taken_ms, now);
    } else {
        recent_use.missed(kSlabSize, now);
    }
    slab->resident = true;
    slab->taken_ms = now;
    ++region_of(slab)->used_slabs;
    push(available[size_class], slab);
    return slab;
}

FreeBlock* Center::take(size_t size_class, uint32_t wanted, uint32_t& got, uint64_t now) {
    FreeBlock* list = nullptr;
    size_t size = size_class * kSmallGrain;
    for (got = 0; got < wanted;) {
        Slab* slab = available[size_class];
        // A partial batch is sufficient: a new slab is opened only if there is no block at all.
        if (!slab && (got > 0 || !(slab = fresh_slab(size_class, now)))) break;
        while (got < wanted && !slab->exhausted()) {
            FreeBlock* block = slab->free;
            if (block) {
                slab->free = block->next;
                --slab->free_count;
            } else {
                block = reinterpret_cast<FreeBlock*>(slab->start + size * slab->carved++);
            }
            block->next = list;
            list = block;
            ++got;
        }
        if (slab->exhausted()) unlink(available[size_class], slab);
    }
    handed_out_bytes += got * size;
    return list;
}

void Center::put(FreeBlock* blocks, size_t size_class) {
    uint64_t now = coarse_clock_ms();
    while (blocks) {
        FreeBlock* block = blocks;
        blocks = block->next;
        Slab* slab = slab_of(block);
        if (slab->exhausted()) push(available[size_class], slab);
        block->next = slab->free;
        slab->free = block;
        ++slab->free_count;
        handed_out_bytes -= size_class * kSmallGrain;
        if (slab->unused()) retire(slab, now);
    }
    if (now >= next_look_ms.load(std::memory_order_relaxed)) give_back_due(now);
}

void Center::retire(Slab* slab, uint64_t now) {
    unlink(available[slab->size_class], slab);
    slab->size_class = 0;
    slab->emptied_ms = now;
    push(empty, slab);
    --region_of(slab)->used_slabs;
}

void Center::give_back_due(uint64_t now) {
    next_look_ms.store(now + RecentUse::kLookMs, std::memory_order_relaxed);
    RecentUse::Choice choice(recent_use, now);
    for (Slab* slab = empty; slab; slab = slab->next) {
        if (slab->resident) choice.count(kSlabSize, slab->emptied_ms);
    }
    choice.decide();
    give_back(&choice);
}

/// Returns the pages of empty slabs to the system, except the pages that `choice` keeps. If `choice` is null, returns
/// all pages.
void Center::give_back(RecentUse::Choice* choice) {
    for (Slab* slab = empty; slab; slab = slab->next) {
        if (!slab->resident || (choice && choice->keeps(kSlabSize, slab->emptied_ms))) continue;
        if (choice) recent_use.given_back(kSlabSize, slab->taken_ms);
        slab->resident = false;
        // The first slab shares its pages with the descriptors, so its pages are kept as long as the region.
        if (slab != &region_of(slab)->slabs[0]) discard_pages(slab->start, kSlabSize);
    }
    auto resident = [](const Slab& slab) { return slab.resident; };
    for (Region* region = regions; region;) {
        Region* following = region->next;
        if (region->used_slabs == 0 && std::none_of(region->slabs, region->slabs + kSlabs, resident))
            unmap_region(region);
        region = following;
    }
}

void Center::unmap_region(Region* region) {
    for (Slab& slab : region->slabs) unlink(empty, &slab);
    unlink(regions, region);
    ++counters.unmap_count;
    counters.reserved_bytes -= kRegionSize;
    unmap_pages(region, kRegionSize);
}

SmallCache no_cache = {};  // every bin is empty and has capacity zero

pthread_key_t thread_key;

void forget_thread(void* cache);

ThreadCache* this_thread_cache() {
    if (small_cache != &no_cache) return static_cast<ThreadCache*>(small_cache);
    static const int made = pthread_key_create(&thread_key, forget_thread);
    if (made != 0) return nullptr;
    void* memory = std::aligned_alloc(alignof(ThreadCache), sizeof(ThreadCache));
    if (!memory) return nullptr;
    auto* cache = new (memory) ThreadCache{};
    if (pthread_setspecific(thread_key, cache) != 0) {
        std::free(cache);
        return nullptr;
    }
    Center& c = center();
    std::lock_guard lock(c.mutex);
    cache->calls_to_clock = 1;
    if (c.generation == 1) {
        for (size_t i = 1; i < kClasses; ++i) cache->bins[i].capacity = bin_capacity(i);
    }
    push(c.threads, cache);
    small_cache = cache;
    return cache;
}

/// Removes the blocks of a bin that were released first, and leaves `kept` blocks.
FreeBlock* take_cold(SmallBin& bin, uint32_t kept) {
    FreeBlock* last_kept = bin.head;
    for (uint32_t i = 1; i < kept; ++i) last_kept = last_kept->next;
    FreeBlock* cold = last_kept->next;
    last_kept->next = nullptr;
    __atomic_store_n(&bin.count, kept, __ATOMIC_RELAXED);
    return cold;
}

// A slab with a block in a bin does not become empty, so blocks beyond the lasting capacity are returned.
void trim(SmallCache* cache) {
    for (size_t i = 1; i <= kLargeBins; ++i) {
        if (cache->bins[i].count > lasting_capacity(i))
            center().put(take_cold(cache->bins[i], lasting_capacity(i)), i);
    }
}

void flush(ThreadCache* cache) {
    Center& c = center();
    for (size_t i = 1; i < kClasses; ++i) {
        SmallBin& bin = cache->bins[i];
        c.put(bin.head, i);
        bin.head = nullptr;
        __atomic_store_n(&bin.count, 0, __ATOMIC_RELAXED);
    }
}

// Runs after the thread's C++ destructors. A block that is released later creates a new cache, and the system then
// calls this function again.
void forget_thread(void* cache) {
    small_cache = &no_cache;
    auto* thread = static_cast<ThreadCache*>(cache);
    Center& c = center();
    {
        std::lock_guard lock(c.mutex);
        flush(thread);
        unlink(c.threads, thread);
    }
    std::free(thread);
}

}  // namespace

__thread SmallCache* small_cache RL_TLS_MODEL = &no_cache;

namespace small_blocks {

bool (*before_mapping)(size_t nbytes) noexcept = nullptr;

void look_soon() noexcept {
    if (small_cache != &no_cache) small_cache->calls_to_clock = 1;
}

void tick(uint64_t now) noexcept {
    Center& c = center();
    if (now < c.next_look_ms.load(std::memory_order_relaxed)) return;
    // If another thread holds the lock, that thread checks for due memory in its next call.
    if (std::unique_lock lock(c.mutex, std::try_to_lock); lock) {
        // This is set first, because otherwise the blocks that trimming returns would cause another check.
        c.next_look_ms.store(now + RecentUse::kLookMs, std::memory_order_relaxed);
        trim(small_cache);
        c.give_back_due(now);
    }
}

void give_back_unused() noexcept {
    Center& c = center();
    std::lock_guard lock(c.mutex);
    c.give_back(nullptr);
}

void* allocate(size_t nbytes, uint64_t now) noexcept {
    constexpr uint32_t kCallsToClock = 32;
    constexpr uint64_t kRareMs = 20;
    size_t size_class = (nbytes + kSmallGrain - 1) / kSmallGrain;
    ThreadCache* cache = this_thread_cache();
    if (cache) {
        cache->calls_between_looks =
            now - cache->looked_ms < kRareMs ? std::min(2 * cache->calls_between_looks, kCallsToClock) : 1;
        cache->calls_to_clock = cache->calls_between_looks;
        cache->looked_ms = now;
        SmallBin& bin = cache->bins[size_class];
        if (FreeBlock* block = bin.head) {
            bin.head = block->next;
            __atomic_store_n(&bin.count, bin.count - 1, __ATOMIC_RELAXED);
            return block;
        }
    }
    Center& c = center();
    std::lock_guard lock(c.mutex);
    uint32_t got = 0;
    FreeBlock* list = c.take(size_class, cache ? bin_capacity(size_class) / 2 : 1, got, now);
    ++c.counters.refill_count;
    if (!list) return nullptr;
    if (cache) {
        cache->bins[size_class].head = list->next;
        __atomic_store_n(&cache->bins[size_class].count, got - 1, __ATOMIC_RELAXED);
    }
    return list;
}

void release(void* data, size_t nbytes) noexcept {
    size_t size_class = (nbytes + kSmallGrain - 1) / kSmallGrain;
    auto* block = static_cast<FreeBlock*>(data);
    ThreadCache* cache = this_thread_cache();
    Center& c = center();
    if (c.inherited(data)) return;
    if (!cache) {
        std::lock_guard lock(c.mutex);
        block->next = nullptr;
        c.put(block, size_class);
        return;
    }
    SmallBin& bin = cache->bins[size_class];
    const uint32_t capacity = bin_capacity(size_class);
    if (bin.count >= capacity) {  // return the half that was released first
        FreeBlock* cold = take_cold(bin, capacity / 2);
        std::lock_guard lock(c.mutex);
        ++c.counters.flush_count;
        c.put(cold, size_class);
    }
    block->next = bin.head;
    bin.head = block;
    __atomic_store_n(&bin.count, bin.count + 1, __ATOMIC_RELAXED);
}

void empty_cache() noexcept {
    Center& c = center();
    std::lock_guard lock(c.mutex);
    if (small_cache != &no_cache) flush(static_cast<ThreadCache*>(small_cache));
    c.give_back(nullptr);
}

Usage usage() noexcept {
    Center& c = center();
    std::lock_guard lock(c.mutex);
    Usage result = c.counters;
    uint64_t cached = 0;
    for (ThreadCache* thread = c.threads; thread; thread = thread->next) {
        for (size_t i = 1; i < kClasses; ++i) {
            cached += __atomic_load_n(&thread->bins[i].count, __ATOMIC_RELAXED) * i * kSmallGrain;
        }
    }
    // Other threads continue during this count, so the difference may be wrong by the blocks that they take or return
    // meanwhile.
    result.allocated_bytes = cached < c.handed_out_bytes ? c.handed_out_bytes - cached : 0;
    return result;
}

void before_fork() noexcept { center().mutex.lock(); }
void after_fork_in_parent() noexcept { center().mutex.unlock(); }

void after_fork_in_child() noexcept {
    Center& c = center();
    ++c.generation;
    std::fill(std::begin(c.available), std::end(c.available), nullptr);
    c.empty = nullptr;
    c.regions = nullptr;
    c.handed_out_bytes = 0;
    c.counters.reserved_bytes = 0;
    c.threads = nullptr;
    if (small_cache != &no_cache) {
        auto* cache = static_cast<ThreadCache*>(small_cache);
        for (SmallBin& bin : cache->bins) bin = {};
        push(c.threads, cache);
    }
    c.mutex.unlock();
}

}  // namespace small_blocks
}  // namespace rushlight::detail
