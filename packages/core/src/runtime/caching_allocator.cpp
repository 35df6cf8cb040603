#include "caching_allocator.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <new>
#include <utility>

#include "rushlight/mutex.h"

// Note [Caching]
// The driver maps segments. A segment is a chain of blocks. Free neighbours are joined at once, so two free blocks are
// never adjacent. Free blocks are stored in bins, with one set of bins for each stream and size range. A block that is
// reused on its own stream needs no wait, because the stream runs new work after old work. A block that other streams
// used too is held back after its release until an event on each of those streams has been reached.
//
// A request is served from the bins, or else by a new segment, or else by a new segment after unused segments were
// released; otherwise it fails. Memory that stays unused is released, too: at once if the driver reports that other
// programs are short of memory, otherwise after some time: Note [How long memory is kept]. Each page of a segment
// records when it was used, so this does not depend on the free neighbours with which a block is joined. Segments
// without a live block are unmapped. In other segments, the pages of free blocks are discarded. No thread does this in
// the background. Instead, the clock is read in each call, and callers that serve small blocks themselves call `tick`
// from time to time.
//
// After a fork, the child keeps inherited segments only for the blocks in them that are in use. A write to memory that
// parent and child share copies a page, which costs more than a new page.

// Note [Private pools]
// A captured graph writes to the same addresses each time it is replayed. So memory that is allocated on a stream
// during the capture comes from a pool of the graph. Free blocks of that pool are used only by captures of the same
// pool. Its segments stay mapped, even if no block in them is in use, as long as a graph uses the pool. Then the pool
// is retired, and each segment is unmapped when its last block is released. A block that several streams of a capture
// used is held back until the capture ends, because the progress of a captured stream cannot be queried. This also holds
// for a block of the common memory that a stream used before its capture: the mark is placed after the capture.

namespace rushlight::detail {

struct CachingAllocator::Pool {
    StreamId stream;
    bool small;
    PoolId id;
    FreeBins bins;
};

namespace {

constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

void raise_peak(uint64_t& peak, uint64_t value) { peak = std::max(peak, value); }

bool whole_segment(const Block* block) { return !block->left && !block->right; }

}  // namespace

CachingAllocator::CachingAllocator(Driver& driver, const CachingConfig& config)
    : driver_(driver), config_(config), limit_(config.limit) {
    spin_before_sleep(mutex_);
}

CachingAllocator::~CachingAllocator() {
    for (const Pending& p : pending_) {
        driver_.wait(p.event);
        driver_.destroy(p.event);
    }
    while (Segment* segment = segments_) {
        segments_ = segment->next;
        driver_.unmap(segment->data, segment->size);
        delete segment;
    }
}

PoolId CachingAllocator::pool_for(StreamId stream) const {
    for (const Captured& c : captured_)
        if (c.stream == stream) return c.pool;
    return 0;
}

CachingAllocator::Pool& CachingAllocator::pool(StreamId stream, bool small) {
    const PoolId id = captured_.empty() ? 0 : pool_for(stream);
    for (auto& p : pools_) {
        if (p->stream == stream && p->small == small && p->id == id) return *p;
    }
    pools_.push_back(std::make_unique<Pool>(Pool{stream, small, id, {}}));
    return *pools_.back();
}

void* CachingAllocator::allocate(size_t nbytes, StreamId stream) noexcept try {
    if (nbytes == 0 || nbytes > SIZE_MAX / 2) return nullptr;
    size_t size = round_up(nbytes, config_.rounding);
    std::lock_guard lock(mutex_);
    uint64_t now = driver_.now_ms();
    const size_t quick = count_quick();
    // Allocate all memory for bookkeeping first, so that from here on only the driver can fail.
    store_.reserve(2);
    live_.reserve();
    if (inherited_unused_) drop_inherited();
    if (!pending_.empty()) settle(false, now);

    Pool& from = pool(stream, size <= config_.small_limit);
    Block* block = find(from, size);
    if (!block) block = map_segment(from, size);
    if (!block) {
        ++statistics_.failure_count;
        return nullptr;
    }
    unlist(block);
    split(block, size);
    block->state = BlockState::Live;
    block->site = 0;
    live_.insert(block);
    // Pages that were discarded are taken from the system again.
    size_t again = take_pages(block, now);
    if (again > 0 && driver_.short_of_memory(again)) give_back_unused();
    if (now >= next_look_.load(std::memory_order_relaxed)) give_back_due(now);
    ++statistics_.allocation_count;
    statistics_.allocated_bytes += block->size;
    statistics_.active_bytes += block->size;
    raise_peak(statistics_.allocated_bytes_peak, statistics_.allocated_bytes - quick);
    raise_peak(statistics_.active_bytes_peak, statistics_.active_bytes - quick);
    return block->data;
} catch (const std::bad_alloc&) { return nullptr; }

Block* CachingAllocator::find(Pool& from, size_t size) { return from.bins.find(size); }

Block* CachingAllocator::map_segment(Pool& into, size_t size) {
    size_t exact = round_up(size, kPageSize);
    size_t usual = into.small                     ? config_.small_segment
                   : size <= config_.medium_limit ? config_.medium_segment
                                                  : exact;
    if (statistics_.reserved_bytes > statistics_.active_bytes && driver_.short_of_memory(usual))
        give_back_unused();
    if (Block* block = new_segment(into, usual)) return block;
    // No memory is left. First wait for the blocks that other streams use: one of them may fit.
    ++statistics_.retry_count;
    settle(true, driver_.now_ms());
    if (Block* block = find(into, size)) return block;
    unmap_unused(usual);
    if (Block* block = new_segment(into, usual)) return block;
    unmap_unused(SIZE_MAX);
    if (Block* block = new_segment(into, usual)) return block;
    return exact < usual ? new_segment(into, exact) : nullptr;
}

Block* CachingAllocator::new_segment(Pool& into, size_t nbytes) {
    if (nbytes > limit_ || statistics_.reserved_bytes > limit_ - nbytes) return nullptr;
    auto segment = std::make_unique<Segment>();
    void* data = driver_.map(nbytes);
    if (!data) return nullptr;
    // The page table is allocated only after the mapping has succeeded, so that no large page table is allocated for a
    // size that does not fit.
    segment->pages.reset(new (std::nothrow) Page[round_up(nbytes, kPageSize) / kPageSize]());
    if (!segment->pages) {
        driver_.unmap(data, nbytes);
        return nullptr;
    }
    ++statistics_.map_count;
    statistics_.reserved_bytes += nbytes;
    raise_peak(statistics_.reserved_bytes_peak, statistics_.reserved_bytes);

    Block* block = store_.take();
    segment->data = static_cast<char*>(data);
    segment->size = nbytes;
    segment->bins = &into.bins;
    segment->stream = into.stream;
    segment->small = into.small;
    segment->pool = into.id;
    segment->first = block;
    segment->next = segments_;
    if (segments_) segments_->previous = segment.get();
    block->data = segment->data;
    block->size = nbytes;
    block->segment = segments_ = segment.release();
    block->state = BlockState::Free;
    list(block);
    return block;
}

/// Splits a block after `size` bytes if the rest is useful: in a segment of small blocks, if the rest could serve a
/// small request; in other segments, if the rest is too large for a small request.
void CachingAllocator::split(Block* block, size_t size) {
    size_t rest = block->size - size;
    if (rest < (block->segment->small ? config_.rounding : config_.small_limit + 1)) return;
    Block* right = store_.take();
    right->data = block->data + size;
    right->size = rest;
    right->segment = block->segment;
    right->left = block;
    right->right = block->right;
    if (right->right) right->right->left = right;
    right->state = BlockState::Free;
    block->size = size;
    block->right = right;
    list(right);
}

bool CachingAllocator::release(void* data) noexcept {
    std::lock_guard lock(mutex_);
    count_quick();
    return release_locked(data, driver_.now_ms());
}

bool CachingAllocator::release_locked(void* data, uint64_t now) noexcept {
    Block* block = live_.take(data);
    if (!block) return false;
    ++statistics_.release_count;
    statistics_.allocated_bytes -= block->size;
    if (block->used_on.empty()) {
        make_free(block, now);
    } else {
        block->state = BlockState::Pending;
        hold_back(block);
    }
    if (now >= next_look_.load(std::memory_order_relaxed)) give_back_due(now);
    return true;
}

/// Holds a released block back until all streams that used it have finished their work on it. If a capture prevents
/// marks on these streams, the marks are placed after the capture.
void CachingAllocator::hold_back(Block* block) {
    const auto captured = [this](StreamId stream) { return pool_for(stream) != 0; };
    if (is_captured(block->segment->pool) || std::ranges::any_of(block->used_on, captured)) {
        held_back_.push_back(block);
        return;
    }
    block->pending_events = static_cast<uint32_t>(block->used_on.size());
    for (StreamId stream : block->used_on) pending_.push_back({driver_.record(stream), block, stream});
    block->used_on.clear();
}

void CachingAllocator::record_use(void* data, StreamId stream) noexcept {
    std::lock_guard lock(mutex_);
    Block* block = live_.find(data);
    if (!block || block->segment->stream == stream) return;
    auto& streams = block->used_on;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

bool CachingAllocator::is_captured(PoolId pool) const {
    return std::any_of(captured_.begin(), captured_.end(),
                       [pool](const Captured& c) { return c.pool == pool; });
}

void CachingAllocator::begin_capture(PoolId pool, StreamId stream) {
    std::lock_guard lock(mutex_);
    captured_.push_back({stream, pool});
}

void CachingAllocator::end_capture(PoolId pool) noexcept {
    std::lock_guard lock(mutex_);
    std::erase_if(captured_, [pool](const Captured& c) { return c.pool == pool; });
    const uint64_t now = driver_.now_ms();
    for (Block* block : std::exchange(held_back_, {})) {
        if (block->segment->pool == pool) {  // the work of a captured stream was recorded and did not run
            block->used_on.clear();
            make_free(block, now);
        } else {
            hold_back(block);
        }
    }
}

void CachingAllocator::retire(PoolId pool) noexcept {
    std::lock_guard lock(mutex_);
    for (Segment* s = segments_; s;) {
        Segment* following = s->next;
        if (s->pool == pool && !s->retired) {
            for (Block* b = s->first; b; b = b->right)
                if (b->state == BlockState::Free) unlist(b);
            s->retired = true;
            if (s->first->state == BlockState::Free && whole_segment(s->first)) unmap(s->first);
        }
        s = following;
    }
    std::erase_if(pools_, [pool](const auto& p) { return p->id == pool; });
}

PoolId CachingAllocator::pool_of(const void* data) noexcept {
    std::lock_guard lock(mutex_);
    const Block* block = live_.find(data);
    return block ? block->segment->pool : 0;
}

/// The pages that a block overlaps.
std::span<Page> CachingAllocator::pages(const Block* block) const {
    size_t begin = static_cast<size_t>(block->data - block->segment->data);
    size_t first = begin / kPageSize, end = (begin + block->size - 1) / kPageSize + 1;
    return {&block->segment->pages[first], end - first};
}

/// The pages that contain only this block.
std::span<Page> CachingAllocator::whole_pages(const Block* block) const {
    if (whole_segment(block)) return pages(block);
    size_t begin = static_cast<size_t>(block->data - block->segment->data);
    size_t first = round_up(begin, kPageSize) / kPageSize;
    size_t end = (begin + block->size) / kPageSize;
    return {&block->segment->pages[first], end > first ? end - first : 0};
}

/// Marks the pages of a block as used. Returns how many bytes of these pages had been discarded.
size_t CachingAllocator::take_pages(const Block* block, uint64_t now) {
    size_t discarded = 0, missing = 0;
    for (Page& page : pages(block)) {
        if (page.state == PageState::Resident) {
            if (page.live_count == 0) recent_use_.used_again(kPageSize, page.taken_ms, now);
        } else {
            ++missing;
            discarded += page.state == PageState::Discarded;
            page.state = PageState::Resident;
        }
        page.taken_ms = now;
        ++page.live_count;
    }
    if (missing > 0) recent_use_.missed(missing * kPageSize, now);
    return discarded * kPageSize;
}

void CachingAllocator::release_pages(const Block* block, uint64_t now) {
    for (Page& page : pages(block)) {
        page.released_ms = now;
        --page.live_count;
    }
}

void CachingAllocator::make_free(Block* block, uint64_t now) {
    statistics_.active_bytes -= block->size;
    block->state = BlockState::Free;
    release_pages(block, now);
    if (Block* left = block->left; left && left->state == BlockState::Free) {
        unlist(left);
        block = absorb(left, block);
    }
    if (Block* right = block->right; right && right->state == BlockState::Free) {
        unlist(right);
        block = absorb(block, right);
    }
    list(block);
    if (block->segment->retired && whole_segment(block)) unmap(block);
}

Block* CachingAllocator::absorb(Block* left, Block* right) {
    left->size += right->size;
    left->right = right->right;
    if (left->right) left->right->left = left;
    store_.give(right);
    return left;
}

void CachingAllocator::list(Block* block) {
    if (!block->segment->retired) block->segment->bins->insert(block);
}

void CachingAllocator::unlist(Block* block) {
    if (!block->segment->retired) block->segment->bins->remove(block);
}

/// Unmaps the segment of a free block. The block must be the only one in the segment.
void CachingAllocator::unmap(Block* block) {
    Segment* segment = block->segment;
    unlist(block);
    store_.give(block);
    (segment->previous ? segment->previous->next : segments_) = segment->next;
    if (segment->next) segment->next->previous = segment->previous;
    ++statistics_.unmap_count;
    statistics_.reserved_bytes -= segment->size;
    driver_.unmap(segment->data, segment->size);
    delete segment;
}

/// Returns unused segments to the driver until `wanted` bytes are returned. Begins with a segment that is large enough
/// by itself, if there is one.
void CachingAllocator::unmap_unused(size_t wanted) {
    Segment* fitting = nullptr;
    auto unused = [](const Segment* s) {
        return s->pool == 0 && s->first->state == BlockState::Free && whole_segment(s->first);
    };
    for (Segment* s = segments_; s; s = s->next) {
        if (unused(s) && s->size >= wanted && (!fitting || s->size < fitting->size)) fitting = s;
    }
    if (fitting) return unmap(fitting->first);
    size_t freed = 0;
    for (Segment* s = segments_; s && freed < wanted;) {
        Segment* following = s->next;
        if (unused(s)) {
            freed += s->size;
            unmap(s->first);
        }
        s = following;
    }
}

/// Frees the blocks that other streams no longer use. The marks of one stream are reached in order.
void CachingAllocator::settle(bool wait, uint64_t now) {
    std::vector<StreamId> blocked;
    for (auto it = pending_.begin(); it != pending_.end();) {
        bool behind = std::find(blocked.begin(), blocked.end(), it->stream) != blocked.end();
        if (wait) {
            driver_.wait(it->event);
        } else if (behind || !driver_.reached(it->event)) {
            if (!behind) blocked.push_back(it->stream);
            ++it;
            continue;
        }
        driver_.destroy(it->event);
        if (--it->block->pending_events == 0) make_free(it->block, now);
        it = pending_.erase(it);
    }
}

void CachingAllocator::tick(uint64_t now) noexcept {
    if (now < next_look_.load(std::memory_order_relaxed)) return;
    // If another thread holds the lock, that thread checks for due memory.
    if (std::unique_lock lock(mutex_, std::try_to_lock); lock) give_back_due(now);
}

void CachingAllocator::make_room(size_t nbytes) noexcept {
    std::lock_guard lock(mutex_);
    if (statistics_.reserved_bytes > statistics_.active_bytes && driver_.short_of_memory(nbytes))
        give_back_unused();
}

void CachingAllocator::give_back_due(uint64_t now) {
    auto look_after = [&](uint64_t ms) {
        next_look_.store(now + std::min(ms, RecentUse::kLookMs), std::memory_order_relaxed);
    };
    // No memory is unused now, but memory that is released later may have to be returned at once.
    if (statistics_.reserved_bytes == statistics_.active_bytes) return look_after(RecentUse::kLookSoonMs);
    if (driver_.short_of_memory(0)) {
        give_back_unused();
        return look_after(RecentUse::kLookSoonMs);
    }
    look_after(driver_.calm_ms());
    RecentUse::Choice choice(recent_use_, now);
    for (auto& p : pools_) {
        if (p->id != 0) continue;
        p->bins.for_each_from(kPageSize, [&](Block* block) {
            for (const Page& page : whole_pages(block)) {
                if (page.state == PageState::Resident) choice.count(kPageSize, page.released_ms);
            }
        });
    }
    choice.decide();
    give_back_all(&choice);
}

void CachingAllocator::give_back_unused() { give_back_all(nullptr); }

void CachingAllocator::give_back_all(RecentUse::Choice* choice) {
    for (auto& p : pools_) {
        if (p->id == 0) p->bins.for_each_from(kPageSize, [&](Block* block) { give_back(block, choice); });
    }
}

/// Returns the pages of a free block to the system, except the pages that `choice` keeps. If `choice` is null, returns
/// all pages.
void CachingAllocator::give_back(Block* block, RecentUse::Choice* choice) {
    std::span<Page> within = whole_pages(block);
    bool empty = whole_segment(block);
    for (Page& page : within) {
        if (page.state != PageState::Resident) continue;
        if (choice && choice->keeps(kPageSize, page.released_ms)) {
            empty = false;
            continue;
        }
        page.state = PageState::Leaving;
        // Memory that is released under memory pressure does not increase the amount of memory to keep.
        if (choice) recent_use_.given_back(kPageSize, page.taken_ms);
    }
    if (empty) return unmap(block);
    char* data = block->segment->data + (within.data() - block->segment->pages.get()) * ptrdiff_t{kPageSize};
    for (size_t i = 0; i < within.size();) {
        size_t begin = i;
        for (; i < within.size() && within[i].state == PageState::Leaving; ++i)
            within[i].state = PageState::Discarded;
        if (i > begin) {
            driver_.discard(data + begin * kPageSize, (i - begin) * kPageSize);
        } else {
            ++i;
        }
    }
}

void CachingAllocator::empty_cache() noexcept {
    std::lock_guard lock(mutex_);
    settle(true, driver_.now_ms());
    if (inherited_unused_) drop_inherited();
    give_back_unused();
}

void CachingAllocator::after_fork_in_child() noexcept {
    for (auto& p : pools_) p->bins.clear();
    for (Segment* s = segments_; s; s = s->next) s->retired = true;
    for (const Pending& p : pending_) {  // the work on the device belongs to the parent
        if (--p.block->pending_events == 0) {
            statistics_.active_bytes -= p.block->size;
            p.block->state = BlockState::Free;
        }
    }
    for (Block* block : held_back_) {
        statistics_.active_bytes -= block->size;
        block->state = BlockState::Free;
    }
    pending_.clear();
    held_back_.clear();
    captured_.clear();
    // Unmapped later, because most child processes call exec first and never need this.
    inherited_unused_ = true;
    mutex_.unlock();
}

void CachingAllocator::drop_inherited() {
    inherited_unused_ = false;
    for (Segment* s = segments_; s;) {
        Segment* following = s->next;
        if (s->retired && s->first->state == BlockState::Free && whole_segment(s->first)) unmap(s->first);
        s = following;
    }
}

/// Updates the peaks. Returns the number of bytes that threads keep in their lists. Must be called before the allocator
/// changes its numbers of bytes.
size_t CachingAllocator::count_quick() noexcept {
    if (quick_.empty()) return 0;
    size_t held = 0, least = 0;
    for (QuickBlocks* list : quick_) {
        held += list->bytes();
        least += list->least_since();
    }
    raise_peak(statistics_.allocated_bytes_peak, statistics_.allocated_bytes - least);
    raise_peak(statistics_.active_bytes_peak, statistics_.active_bytes - least);
    return held;
}

void CachingAllocator::add(QuickBlocks& list) {
    std::lock_guard lock(mutex_);
    quick_.push_back(&list);
}

void CachingAllocator::take_back(QuickBlocks& list) noexcept {
    std::lock_guard lock(mutex_);
    count_quick();
    const uint64_t now = driver_.now_ms();
    list.drain([&](void* data) { release_locked(data, now); });
}

void CachingAllocator::remove(QuickBlocks& list) noexcept {
    take_back(list);
    std::lock_guard lock(mutex_);
    std::erase(quick_, &list);
}

MemoryStatistics CachingAllocator::statistics() noexcept {
    std::lock_guard lock(mutex_);
    const size_t quick = count_quick();
    MemoryStatistics result = statistics_;
    result.allocated_bytes -= quick;
    result.active_bytes -= quick;
    result.limit_bytes = limit_;
    return result;
}

void CachingAllocator::reset_peaks() noexcept {
    std::lock_guard lock(mutex_);
    const size_t quick = count_quick();
    statistics_.allocated_bytes_peak = statistics_.allocated_bytes - quick;
    statistics_.active_bytes_peak = statistics_.active_bytes - quick;
    statistics_.reserved_bytes_peak = statistics_.reserved_bytes;
}

uint64_t CachingAllocator::set_limit(uint64_t nbytes) noexcept {
    std::lock_guard lock(mutex_);
    std::swap(limit_, nbytes);
    return nbytes;
}

void CachingAllocator::set_site(void* data, Site site) noexcept {
    std::lock_guard lock(mutex_);
    if (Block* block = live_.find(data)) block->site = site;
}

std::string CachingAllocator::largest_live(size_t count) {
    std::vector<std::pair<size_t, Site>> largest;
    {
        std::lock_guard lock(mutex_);
        for (Segment* s = segments_; s; s = s->next)
            for (Block* b = s->first; b; b = b->right)
                if (b->state == BlockState::Live) largest.emplace_back(b->size, b->site);
    }
    count = std::min(count, largest.size());
    std::partial_sort(largest.begin(), largest.begin() + static_cast<ptrdiff_t>(count), largest.end(),
                      std::greater<>());
    std::string text;
    for (size_t i = 0; i < count; ++i) {
        char size[40];
        std::snprintf(size, sizeof size, "%s%.1f MiB", i ? ", " : "; the largest blocks are ",
                      static_cast<double>(largest[i].first) / (1 << 20));
        text += size;
        // Called without the lock, because the bindings may need the interpreter.
        if (std::string where = describe(largest[i].second); !where.empty()) text += " (" + where + ")";
    }
    return text;
}

std::string CachingAllocator::snapshot() {
    static constexpr const char* kStates[] = {"free", "live", "pending"};
    std::lock_guard lock(mutex_);
    std::string text = "[";
    char line[160];
    for (Segment* s = segments_; s; s = s->next) {
        std::snprintf(
            line, sizeof line,
            "%s\n{\"address\": %zu, \"size\": %zu, \"stream\": %llu, \"pool\": \"%s\", \"blocks\": [",
            s == segments_ ? "" : ",", reinterpret_cast<size_t>(s->data), s->size,
            static_cast<unsigned long long>(s->stream), s->small ? "small" : "large");
        text += line;
        for (Block* b = s->first; b; b = b->right) {
            std::snprintf(line, sizeof line, "%s{\"address\": %zu, \"size\": %zu, \"state\": \"%s\"}",
                          b->left ? ", " : "", reinterpret_cast<size_t>(b->data), b->size,
                          kStates[static_cast<int>(b->state)]);
            text += line;
        }
        text += "]}";
    }
    return text + "]";
}

}  // namespace rushlight::detail
