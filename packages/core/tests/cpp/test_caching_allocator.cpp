// sources: src/runtime/caching_allocator.cpp src/runtime/site.cpp src/runtime/error.cpp

// The caching allocator on a device that a test controls. Streams do not run until a test advances them, and a test sets
// the size of memory. Every piece of queued work checks that nothing else has written to its block.
#include "runtime/caching_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "check.h"
#include "stamped_block.h"

using namespace rushlight;
using namespace rushlight::detail;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

class FakeDevice final : public Driver {
  public:
    ~FakeDevice() override { CHECK_EQUAL(segments.size(), 0u); }

    void* map(size_t nbytes) noexcept override {
        ++map_calls;
        if (mapped + nbytes > memory || map_calls == failing_call) return nullptr;
        void* data = std::aligned_alloc(2 * kMiB, (nbytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB));
        segments[static_cast<char*>(data)] = nbytes;
        mapped += nbytes;
        return data;
    }
    void unmap(void* data, size_t nbytes) noexcept override {
        auto found = segments.find(static_cast<char*>(data));
        CHECK(found != segments.end() && found->second == nbytes);
        if (found == segments.end()) return;
        if (unmap_waits) {
            for (auto& [stream, work] : work_)
                while (advance(stream)) {}
        }
        mapped -= nbytes;
        segments.erase(found);
        drop_pages(data, nbytes);
        std::free(data);
    }
    void discard(void* data, size_t nbytes) noexcept override {
        discarded += nbytes;
        drop_pages(data, nbytes);
        std::memset(data, 0, nbytes);
    }
    /// Simulates writes to memory, and returns the number of page faults.
    size_t touch(void* data, size_t nbytes) {
        size_t faults = 0;
        auto begin = reinterpret_cast<uintptr_t>(data) / kPage,
             end = (reinterpret_cast<uintptr_t>(data) + nbytes - 1) / kPage + 1;
        for (uintptr_t page = begin; page < end; ++page) faults += resident.insert(page).second;
        return faults;
    }
    size_t resident_bytes() const { return resident.size() * kPage; }
    uint64_t now_ms() noexcept override { return clock; }
    bool short_of_memory(size_t nbytes) noexcept override { return nbytes >= spare; }
    uint64_t calm_ms() noexcept override { return calm; }

    // A mark, which stores its stream and the number of pieces of work before it.
    Event record(StreamId stream) noexcept override {
        ++live_events;
        return new Mark{stream, queued[stream]};
    }
    bool reached(Event event) noexcept override {
        auto* mark = static_cast<Mark*>(event);
        return done[mark->stream] >= mark->ticket;
    }
    void wait(Event event) noexcept override {
        auto* mark = static_cast<Mark*>(event);
        while (done[mark->stream] < mark->ticket) advance(mark->stream);
    }
    void destroy(Event event) noexcept override {
        --live_events;
        delete static_cast<Mark*>(event);
    }

    void enqueue(StreamId stream, std::function<void()> work) {
        work_[stream].push_back(std::move(work));
        ++queued[stream];
    }
    /// Does one piece of work. Returns false if there is no work.
    bool advance(StreamId stream) {
        if (work_[stream].empty()) return false;
        work_[stream].front()();
        work_[stream].pop_front();
        ++done[stream];
        return true;
    }
    bool holds(const char* data, size_t nbytes) const {
        auto next = segments.upper_bound(const_cast<char*>(data));
        if (next == segments.begin()) return false;
        auto segment = std::prev(next);
        return data + nbytes <= segment->first + segment->second;
    }

    size_t memory = SIZE_MAX / 2, spare = SIZE_MAX, mapped = 0, discarded = 0;
    bool unmap_waits = false;  // whether unmapping waits for queued work, as on a real device
    int map_calls = 0, failing_call = -1, live_events = 0;
    uint64_t clock = 1'000'000, calm = UINT64_MAX;
    std::map<char*, size_t> segments;
    std::map<StreamId, uint64_t> queued, done;

  private:
    static constexpr size_t kPage = 2 * kMiB;
    void drop_pages(void* data, size_t nbytes) {
        auto begin = reinterpret_cast<uintptr_t>(data) / kPage;
        for (uintptr_t page = begin; page < begin + nbytes / kPage; ++page) resident.erase(page);
    }
    std::set<uintptr_t> resident;

    struct Mark {
        StreamId stream;
        uint64_t ticket;
    };
    std::map<StreamId, std::deque<std::function<void()>>> work_;
};

/// Returns the number of blocks of a snapshot in a given state.
size_t count_blocks(const std::string& snapshot, const char* state) {
    std::string part = std::string("\"state\": \"") + state + "\"";
    size_t n = 0;
    for (size_t at = snapshot.find(part); at != std::string::npos; at = snapshot.find(part, at + 1)) ++n;
    return n;
}

}  // namespace

TEST(blocks_are_rounded_apart_and_reused) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    void* a = allocator.allocate(1);
    void* b = allocator.allocate(513);
    void* c = allocator.allocate(1);
    CHECK_EQUAL(static_cast<char*>(b) - static_cast<char*>(a), 512);
    CHECK_EQUAL(static_cast<char*>(c) - static_cast<char*>(b), 1024);
    CHECK_EQUAL(device.segments.size(), 1u);
    CHECK(allocator.release(b));
    CHECK_EQUAL(allocator.allocate(1000), b);
    CHECK(allocator.allocate(0) == nullptr);
    CHECK(allocator.release(a) && allocator.release(b) && allocator.release(c));
    CHECK_EQUAL(allocator.statistics().allocated_bytes, 0u);
}

TEST(foreign_and_released_pointers_are_refused) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    void* a = allocator.allocate(4096);
    CHECK(!allocator.release(static_cast<char*>(a) + 512));
    CHECK(!allocator.release(nullptr));
    CHECK(allocator.release(a));
    CHECK(!allocator.release(a));
}

TEST(sizes_that_overflow_fail) {
    FakeDevice device;
    device.memory = 100 * kMiB;
    CachingAllocator allocator(device, {});
    for (size_t nbytes : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, SIZE_MAX / 2 + 1, size_t{1} << 60})
        CHECK(allocator.allocate(nbytes) == nullptr);
    CHECK_EQUAL(allocator.statistics().reserved_bytes, 0u);
}

TEST(best_fit) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    std::vector<void*> sizes;
    for (size_t n : {64, 48, 40, 32}) sizes.push_back(allocator.allocate(n * kMiB));
    for (void* data : sizes) CHECK(allocator.release(data));
    CHECK_EQUAL(allocator.allocate(40 * kMiB), sizes[2]);
    CHECK_EQUAL(allocator.allocate(34 * kMiB), sizes[1]);  // the smallest free block that fits
    CHECK_EQUAL(allocator.allocate(32 * kMiB), sizes[3]);
    CHECK_EQUAL(device.map_calls, 4);
    for (int i : {2, 1, 3}) CHECK(allocator.release(sizes[static_cast<size_t>(i)]));
}

TEST(large_blocks_are_cut_only_where_the_rest_is_large) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    void* whole = allocator.allocate(40 * kMiB);
    CHECK(allocator.release(whole));
    void* a = allocator.allocate(39 * kMiB);  // the rest of 1 MiB is too small for the pool of large blocks
    CHECK_EQUAL(a, whole);
    CHECK_EQUAL(allocator.statistics().allocated_bytes, 40 * kMiB);
    CHECK(allocator.release(a));
    a = allocator.allocate(30 * kMiB);
    void* b = allocator.allocate(10 * kMiB);
    CHECK_EQUAL(device.map_calls, 1);
    CHECK(allocator.release(a) && allocator.release(b));
    CHECK_EQUAL(allocator.allocate(40 * kMiB), whole);  // the two blocks are joined again
    CHECK(allocator.release(whole));
}

TEST(everything_joins_again) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    std::mt19937 random(1);
    std::vector<void*> live;
    for (int i = 0; i < 3000; ++i)
        live.push_back(allocator.allocate(1 + random() % (i % 10 ? 100'000 : 20'000'000)));
    std::shuffle(live.begin(), live.end(), random);
    for (void* data : live) CHECK(allocator.release(data));
    CHECK_EQUAL(count_blocks(allocator.snapshot(), "free"), device.segments.size());
    CHECK_EQUAL(count_blocks(allocator.snapshot(), "live"), 0u);
    allocator.empty_cache();
    CHECK_EQUAL(device.mapped, 0u);
    CHECK_EQUAL(allocator.statistics().reserved_bytes, 0u);
}

TEST(live_blocks_never_overlap_and_fragmentation_stays_small) {
    FakeDevice device;
    CachingAllocator allocator(device, {.rounding = 64});
    std::mt19937 random(2);
    std::map<char*, size_t> live;
    size_t bytes = 0, most = 0, reserved = 0;
    for (int i = 0; i < 100'000; ++i) {
        // The number of live blocks rises and falls repeatedly, so that there are gaps to fill.
        bool grow = live.empty() || random() % 100 < (i / 5000 % 2 ? 35 : 65);
        if (grow) {
            size_t nbytes = 1 + (random() % 8 ? random() % 30'000 : random() % (4 * kMiB));
            auto* data = static_cast<char*>(allocator.allocate(nbytes));
            CHECK(device.holds(data, nbytes));
            CHECK_EQUAL(reinterpret_cast<uintptr_t>(data) % 64, 0u);
            auto next = live.lower_bound(data);
            CHECK(next == live.end() || data + nbytes <= next->first);
            CHECK(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= data);
            live[data] = nbytes;
            bytes += nbytes;
        } else {
            auto victim = live.lower_bound(live.begin()->first +
                                           random() % (live.rbegin()->first - live.begin()->first + 1));
            bytes -= victim->second;
            CHECK(allocator.release(victim->first));
            live.erase(victim);
        }
        most = std::max(most, bytes);
        reserved = std::max(reserved, device.mapped);
    }
    CHECK(reserved < most * 3 / 2);
    MemoryStatistics s = allocator.statistics();
    CHECK_EQUAL(s.reserved_bytes, device.mapped);
    CHECK_EQUAL(s.reserved_bytes_peak, reserved);
    CHECK_EQUAL(s.allocation_count - s.release_count, live.size());
    for (auto& [data, nbytes] : live) CHECK(allocator.release(data));
}

TEST(a_stream_reuses_its_blocks_at_once_and_only_its_own) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    void* a = allocator.allocate(1024, 1);
    device.enqueue(1, [] {});
    CHECK(allocator.release(a));
    void* other = allocator.allocate(1024, 2);
    CHECK(other != a);
    CHECK_EQUAL(allocator.allocate(1024, 1), a);
    CHECK_EQUAL(device.live_events, 0);
    CHECK(allocator.release(a) && allocator.release(other));
}

TEST(a_block_waits_for_every_stream_that_used_it) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    void* a = allocator.allocate(1024, 1);
    device.enqueue(2, [] {});
    device.enqueue(3, [] {});
    allocator.record_use(a, 2);
    allocator.record_use(a, 2);  // a second call has no effect
    allocator.record_use(a, 3);
    allocator.record_use(a, 1);  // the block's own stream needs no event
    CHECK(allocator.release(a));
    CHECK_EQUAL(device.live_events, 2);
    CHECK_EQUAL(count_blocks(allocator.snapshot(), "pending"), 1u);
    CHECK_EQUAL(allocator.statistics().allocated_bytes, 0u);
    CHECK_EQUAL(allocator.statistics().active_bytes, 1024u);
    void* b = allocator.allocate(1024, 1);
    CHECK(b != a);
    device.advance(2);
    void* c = allocator.allocate(1024, 1);
    CHECK(c != a);
    device.advance(3);
    CHECK_EQUAL(allocator.allocate(1024, 1), a);
    CHECK_EQUAL(device.live_events, 0);
    CHECK(allocator.release(a) && allocator.release(b) && allocator.release(c));
}

TEST(a_full_device_waits_for_pending_blocks_before_it_fails) {
    FakeDevice device;
    device.memory = 20 * kMiB;
    CachingAllocator allocator(device, {});
    void* a = allocator.allocate(20 * kMiB, 1);
    device.enqueue(2, [] {});
    allocator.record_use(a, 2);
    CHECK(allocator.release(a));
    void* b = allocator.allocate(18 * kMiB, 1);
    CHECK_EQUAL(b, a);
    CHECK_EQUAL(device.done[2], 1u);
    CHECK(allocator.release(b));
}

TEST(unused_segments_of_another_pool_make_room) {
    FakeDevice device;
    device.memory = 64 * kMiB;
    CachingAllocator allocator(device, {});
    void* a = allocator.allocate(30 * kMiB, 1);
    void* b = allocator.allocate(30 * kMiB, 1);
    CHECK(allocator.release(a) && allocator.release(b));
    void* c = allocator.allocate(32 * kMiB, 2);  // the cache of stream 1 must be released first
    CHECK(c != nullptr);
    CHECK_EQUAL(allocator.statistics().retry_count, 1u);
    CHECK(allocator.allocate(40 * kMiB, 2) == nullptr);
    CHECK_EQUAL(allocator.statistics().failure_count, 1u);
    void* d = allocator.allocate(32 * kMiB, 2);  // the allocator works after a failure
    CHECK(d != nullptr);
    CHECK(allocator.release(c) && allocator.release(d));
}

TEST(the_cache_shrinks_when_others_need_memory) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    void* cached = allocator.allocate(40 * kMiB);
    void* live = allocator.allocate(30 * kMiB);
    CHECK(allocator.release(cached));
    device.spare = 50 * kMiB;
    void* fits = allocator.allocate(44 * kMiB);
    CHECK_EQUAL(device.mapped, 114 * kMiB);
    void* reused = allocator.allocate(40 * kMiB);  // reusing a cached block needs no new memory
    CHECK_EQUAL(reused, cached);
    CHECK(allocator.release(reused));
    void* more = allocator.allocate(60 * kMiB);
    CHECK_EQUAL(device.mapped, 134 * kMiB);  // the cached 40 MiB were returned
    CHECK(allocator.release(live) && allocator.release(fits) && allocator.release(more));
}

TEST(near_the_limit_a_segment_is_only_as_large_as_it_must_be) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    CHECK_EQUAL(allocator.set_limit(8 * kMiB), UINT64_MAX);
    void* a = allocator.allocate(5 * kMiB);  // would normally map a segment of 20 MiB
    CHECK(a != nullptr);
    CHECK_EQUAL(device.mapped, 6 * kMiB);
    CHECK(allocator.allocate(3 * kMiB) == nullptr);
    CHECK(allocator.release(a));
    void* b = allocator.allocate(7 * kMiB);
    CHECK(b != nullptr);
    CHECK(allocator.release(b));
}

TEST(a_driver_may_fail_at_any_call) {
    for (int failing = 1; failing <= 12; ++failing) {
        FakeDevice device;
        CachingAllocator allocator(device, {});
        device.failing_call = failing;
        std::vector<void*> live;
        for (size_t n : {1, 12, 1, 30, 3, 3, 20, 8, 8, 1}) {
            if (void* data = allocator.allocate(n * kMiB, n % 2)) live.push_back(data);
        }
        CHECK_EQUAL(live.size(), 10u);  // the retry succeeded
        CHECK_EQUAL(allocator.statistics().reserved_bytes, device.mapped);
        for (void* data : live) CHECK(allocator.release(data));
        allocator.empty_cache();
        CHECK_EQUAL(device.mapped, 0u);
    }
}

namespace {

/// A program on a fake device, which writes to the memory that it allocates.
struct Program {
    FakeDevice device;
    CachingAllocator allocator{device, {.rounding = 64}};
    size_t faults = 0;

    std::vector<void*> allocate(const std::vector<size_t>& sizes) {
        std::vector<void*> blocks;
        for (size_t nbytes : sizes) {
            blocks.push_back(allocator.allocate(nbytes));
            faults += device.touch(blocks.back(), nbytes);
        }
        return blocks;
    }
    void release(const std::vector<void*>& blocks) {
        for (void* data : blocks) CHECK(allocator.release(data));
    }
    void use(const std::vector<size_t>& sizes) { release(allocate(sizes)); }
    /// Simulates small calls every `interval` milliseconds. Another allocator serves them and calls tick().
    void small_calls(uint64_t ms, uint64_t interval = 10) {
        for (uint64_t end = device.clock + ms; device.clock < end;) {
            device.clock += std::min(interval, end - device.clock);
            allocator.tick(device.clock);
        }
    }
};

std::vector<size_t> many(size_t n, size_t nbytes) { return std::vector<size_t>(n, nbytes); }

}  // namespace

TEST(a_peak_that_does_not_come_back_is_returned_after_a_second) {
    for (size_t nbytes : {100 * kMiB, 25 * kMiB, 4 * kMiB, kMiB, kMiB / 8}) {
        Program program;
        program.use(many(400 * kMiB / nbytes, nbytes));
        CHECK(program.device.resident_bytes() >= 400 * kMiB);
        program.small_calls(900);
        CHECK(program.device.resident_bytes() >= 400 * kMiB);
        program.small_calls(400);
        CHECK_EQUAL(program.device.resident_bytes(), 0u);
        CHECK_EQUAL(program.allocator.statistics().reserved_bytes, 0u);
    }
}

TEST(rare_calls_return_a_peak_too) {
    Program program;
    program.use(many(100, 4 * kMiB));
    program.small_calls(5000, 5000);  // a single call
    CHECK_EQUAL(program.device.resident_bytes(), 0u);
}

TEST(a_process_that_sleeps_keeps_its_cache) {
    Program program;
    program.use(many(100, 4 * kMiB));
    program.device.clock += 100'000;
    size_t before = program.faults;
    program.use({4 * kMiB});
    CHECK_EQUAL(program.faults, before);
}

TEST(allocations_and_releases_return_a_peak) {
    Program program;
    void* held = program.allocator.allocate(12 * kMiB);
    program.use(many(100, 4 * kMiB));
    program.device.clock += 1100;
    void* other = program.allocator.allocate(30 * kMiB);
    CHECK_EQUAL(program.device.resident_bytes(), 0u);
    program.use(many(100, 4 * kMiB));
    program.device.clock += 5000;
    CHECK(program.allocator.release(held));
    CHECK_EQUAL(program.device.resident_bytes(), 0u);
    CHECK(program.allocator.release(other));
}

// A neighbouring block that is in use, or that is allocated and released again, does not reset the age of a free block.
TEST(free_neighbours_keep_their_own_age) {
    Program program;
    std::vector<void*> blocks = program.allocate(many(5, 4 * kMiB));  // one segment of 20 MiB
    program.release({blocks[1], blocks[2], blocks[3], blocks[4]});
    for (int i = 0; i < 15; ++i) {
        program.small_calls(100);
        program.use({4 * kMiB});
    }
    CHECK_EQUAL(program.device.resident_bytes(), 8 * kMiB);
    CHECK_EQUAL(program.device.discarded, 12 * kMiB);
    program.small_calls(1300);
    CHECK_EQUAL(program.device.resident_bytes(), 4 * kMiB);
    size_t discarded = program.device.discarded;
    program.small_calls(5000);  // pages are discarded only once
    CHECK_EQUAL(program.device.discarded, discarded);
    program.release({blocks[0]});
}

TEST(loops_see_no_page_fault_after_the_third_step) {
    std::mt19937 random(5);
    std::vector<size_t> mixed;
    for (int i = 0; i < 200; ++i)
        mixed.push_back(random() % 3 ? 5000 + random() % 200'000 : random() % (6 * kMiB) + 1);
    for (uint64_t step_ms : {10, 500, 1500, 3000, 20'000, 60'000}) {
        for (const auto& sizes : {many(4, 100 * kMiB), many(100, 4 * kMiB), mixed}) {
            Program program;
            void* weights = program.allocator.allocate(3 * kMiB);
            uint64_t steps = std::max<uint64_t>(8, 30'000 / step_ms);
            for (uint64_t step = 0; step < steps; ++step) {
                size_t before = program.faults;
                std::vector<void*> blocks = program.allocate(sizes);
                program.small_calls(step_ms / 4);
                program.release(blocks);
                program.small_calls(step_ms - step_ms / 4);
                if (step >= 3) CHECK_EQUAL(program.faults, before);
            }
            CHECK(program.device.resident_bytes() > 50 * kMiB);
            program.small_calls(4 * step_ms + 2000);  // after the loop, its memory is returned
            CHECK(program.device.resident_bytes() <= 4 * kMiB);
            program.release({weights});
        }
    }
}

// The phases of a step run at different times, and need different sizes.
TEST(a_long_step_of_several_phases_sees_no_page_fault) {
    Program program;
    for (int step = 0; step < 6; ++step) {
        size_t before = program.faults;
        for (size_t phase = 0; phase < 8; ++phase) {
            for (int i = 0; i < 5; ++i) {
                program.use(many(4, (12 + 2 * phase) * kMiB));
                program.small_calls(500);
            }
        }
        if (step >= 3) CHECK_EQUAL(program.faults, before);
    }
}

TEST(one_missing_repetition_costs_nothing) {
    Program program;
    for (int step = 0; step < 8; ++step) {
        size_t before = program.faults;
        program.use(many(100, step == 5 ? kMiB / 2 : 4 * kMiB));
        program.small_calls(20'000);
        if (step >= 3 && step != 5) CHECK_EQUAL(program.faults, before);
    }
}

TEST(little_memory_that_is_used_again_late_keeps_no_large_peak) {
    Program program;
    for (int i = 0; i < 10; ++i) {
        program.use({kMiB / 2});
        program.small_calls(3000);
    }
    program.use(many(100, 4 * kMiB));
    program.small_calls(1300);
    CHECK(program.device.resident_bytes() <= 20 * kMiB);
}

TEST(all_that_is_unused_goes_back_at_once_when_others_need_it) {
    Program program;
    std::vector<void*> blocks = program.allocate(many(5, 4 * kMiB));
    program.release({blocks[1], blocks[2], blocks[3], blocks[4]});
    program.use({100 * kMiB});
    program.small_calls(300);
    CHECK_EQUAL(program.device.resident_bytes(), 120 * kMiB);
    program.allocator.make_room(10 * kMiB);
    CHECK_EQUAL(program.device.resident_bytes(), 120 * kMiB);
    program.device.spare = 5 * kMiB;
    program.allocator.make_room(10 * kMiB);
    CHECK_EQUAL(program.device.resident_bytes(), 4 * kMiB);
    // Pages that were returned are needed again, and cached memory has to be released for them.
    program.device.spare = SIZE_MAX;
    program.use({100 * kMiB});
    program.device.spare = 5 * kMiB;
    program.use({8 * kMiB});
    CHECK_EQUAL(program.device.resident_bytes(), 12 * kMiB);
    // Nothing is allocated: the shortage is detected when the clock is next read.
    program.device.spare = SIZE_MAX;
    program.use({100 * kMiB});
    program.device.spare = 0;
    program.small_calls(250);
    CHECK_EQUAL(program.device.resident_bytes(), 4 * kMiB);
    // If other programs may need memory soon, the clock is read more often.
    program.device.spare = SIZE_MAX;
    program.device.calm = 30;
    program.small_calls(250);
    program.use({100 * kMiB});
    program.small_calls(RecentUse::kLookSoonMs);
    CHECK_EQUAL(program.device.resident_bytes(), 104 * kMiB);
    program.device.spare = 0;
    program.small_calls(30);
    CHECK_EQUAL(program.device.resident_bytes(), 4 * kMiB);
    program.device.spare = SIZE_MAX;
    program.release({blocks[0]});
}

TEST(a_captured_stream_has_a_pool_of_its_own) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    constexpr StreamId kStream = 3;
    char* common = static_cast<char*>(allocator.allocate(kMiB / 2, kStream));
    CHECK(allocator.release(common));
    allocator.begin_capture(7, kStream);
    char* captured = static_cast<char*>(allocator.allocate(kMiB / 2, kStream));
    CHECK(captured != common);
    CHECK_EQUAL(allocator.pool_of(captured), 7u);
    CHECK(allocator.release(captured));
    CHECK(allocator.allocate(kMiB / 2, kStream) == captured);  // the block is reused within the capture
    CHECK(allocator.release(captured));
    char* elsewhere = static_cast<char*>(allocator.allocate(kMiB / 2, 0));
    CHECK_EQUAL(allocator.pool_of(elsewhere), 0u);
    allocator.end_capture(7);

    // No block of the pool is in use, but replays write to the pool.
    CHECK(allocator.allocate(kMiB / 2, kStream) == common);
    allocator.empty_cache();
    CHECK(device.holds(captured, kMiB / 2));
    device.spare = 0;
    void* more = allocator.allocate(64 * kMiB, kStream);
    CHECK(device.holds(captured, kMiB / 2));
    device.spare = SIZE_MAX;

    allocator.begin_capture(7, kStream);  // a second graph of the pool
    CHECK(allocator.allocate(kMiB / 2, kStream) == captured);
    allocator.end_capture(7);
    allocator.retire(7);
    CHECK(device.holds(captured, kMiB / 2));  // the block is live
    CHECK(allocator.release(captured));
    CHECK(!device.holds(captured, kMiB / 2));
    CHECK(allocator.release(common) && allocator.release(elsewhere) && allocator.release(more));
    CHECK_EQUAL(allocator.statistics().active_bytes, 0u);
}

TEST(no_mark_is_recorded_on_a_captured_stream) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    constexpr StreamId kUser = 5, kOther = 6;
    void* block = allocator.allocate(kMiB / 2);
    allocator.record_use(block, kUser);
    device.enqueue(kUser, [] {});
    allocator.begin_capture(1, kUser);
    allocator.begin_capture(2, kOther);
    CHECK(allocator.release(block));
    CHECK_EQUAL(device.live_events, 0);
    CHECK(allocator.allocate(kMiB / 2) != block);
    allocator.end_capture(2);
    CHECK_EQUAL(device.live_events, 0);
    allocator.end_capture(1);
    CHECK_EQUAL(device.live_events, 1);
    CHECK(allocator.allocate(kMiB / 2) != block);
    device.advance(kUser);
    CHECK(allocator.allocate(kMiB / 2) == block);
}

TEST(blocks_of_several_captured_streams_wait_for_the_end_of_the_capture) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    allocator.begin_capture(1, 5);
    allocator.begin_capture(1, 6);
    void* shared = allocator.allocate(4096, 5);
    allocator.record_use(shared, 6);
    CHECK(allocator.release(shared));
    CHECK_EQUAL(device.live_events, 0);  // no event can be recorded on a captured stream
    CHECK(allocator.allocate(4096, 5) != shared);
    allocator.end_capture(1);
    allocator.begin_capture(1, 5);
    CHECK(allocator.allocate(4096, 5) == shared);
    allocator.end_capture(1);
    allocator.retire(1);
}

TEST(a_pool_is_retired_with_blocks_in_every_state) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    allocator.begin_capture(2, 5);
    void* blocks[6];
    for (void*& block : blocks) block = allocator.allocate(4096, 5);
    allocator.end_capture(2);
    CHECK(allocator.release(blocks[0]) && allocator.release(blocks[3]));
    device.enqueue(9, [] {});
    allocator.record_use(blocks[4], 9);
    CHECK(allocator.release(blocks[4]));  // pending
    allocator.retire(2);
    for (int i : {1, 2, 5}) CHECK(allocator.release(blocks[i]));
    CHECK_EQUAL(device.segments.size(), 1u);
    allocator.empty_cache();  // waits for stream 9
    CHECK_EQUAL(device.segments.size(), 0u);
    CHECK_EQUAL(device.live_events, 0);
}

TEST(a_child_keeps_off_inherited_memory) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    void* live = allocator.allocate(kMiB);
    void* unused = allocator.allocate(kMiB / 2);
    void* alone = allocator.allocate(32 * kMiB);
    CHECK(allocator.release(unused) && allocator.release(alone));
    allocator.before_fork();
    allocator.after_fork_in_child();
    void* fresh = allocator.allocate(kMiB / 2);
    CHECK(fresh != unused);
    CHECK(!device.segments.contains(static_cast<char*>(alone)));  // no block of this segment was in use
    CHECK(device.holds(static_cast<char*>(live), kMiB));
    CHECK(allocator.release(live));
    CHECK(!device.holds(static_cast<char*>(live), kMiB));  // the segment was unmapped with its last block
    CHECK(allocator.release(fresh));
    CHECK_EQUAL(allocator.allocate(kMiB / 2), fresh);  // the child's own memory is cached as usual
    CHECK(allocator.release(fresh));
}

// Queued work writes a stamp to its block, and checks the stamp later. If a block is given to another stream too early, or
// to two owners, the check finds another stamp.
TEST(work_never_meets_foreign_work_in_its_memory) {
    FakeDevice device;
    device.memory = 96 * kMiB;
    device.unmap_waits = true;
    CachingAllocator allocator(device, {});
    std::mt19937 random(3);
    std::vector<StampedBlock> live;
    OwnedRanges owned;
    uint64_t stamps = 0;
    int refused = 0;
    for (int i = 0, end = fuzz_operations(60'000); i < end; ++i) {
        StreamId stream = random() % 4;
        switch (random() % 8) {
            case 0:
            case 1:
            case 2: {
                size_t nbytes = 64 + (random() % 6 ? random() % 20'000 : random() % (6 * kMiB));
                auto* data = static_cast<uint64_t*>(allocator.allocate(nbytes, stream));
                if (!data) {
                    ++refused;
                    break;
                }
                const StampedBlock block{data, nbytes / 8, ++stamps};
                live.push_back(block);
                owned.add(data, nbytes);
                device.enqueue(stream, [block] { block.write(); });
                // Each block is read on its own stream, or after an event on another stream, as in a real
                // program.
                StreamId reader = stream;
                if (random() % 3 == 0) {
                    reader = random() % 4;
                    auto ticket = device.queued[stream];
                    device.enqueue(reader, [&device, stream, ticket] {
                        while (device.done[stream] < ticket) device.advance(stream);
                    });
                    allocator.record_use(data, reader);
                }
                device.enqueue(reader, [block] { block.check(); });
                break;
            }
            case 3:
            case 4:
            case 5:
                if (!live.empty()) {
                    size_t victim = random() % live.size();
                    owned.remove(live[victim].data);
                    CHECK(allocator.release(live[victim].data));
                    live[victim] = live.back();
                    live.pop_back();
                }
                break;
            default:
                for (int n = random() % 6; n > 0; --n) device.advance(stream);
        }
    }
    CHECK(refused > 0);  // the device was full at times
    CHECK(stamps > 10'000);
    for (const StampedBlock& block : live) CHECK(allocator.release(block.data));
    for (StreamId stream = 0; stream < 4; ++stream) {
        while (device.advance(stream)) {}
    }
    allocator.empty_cache();
    CHECK_EQUAL(device.mapped, 0u);
    CHECK_EQUAL(device.live_events, 0);
    CHECK_EQUAL(allocator.statistics().active_bytes, 0u);
}

TEST(replays_of_graphs_never_meet_foreign_work) {
    FakeDevice device;
    device.memory = 160 * kMiB;
    device.unmap_waits = true;
    CachingAllocator allocator(device, {});
    std::mt19937 random(11);
    using Steps = std::vector<std::function<void()>>;
    struct Graph {
        PoolId pool;
        StreamId replayed_on;  // the same stream for all graphs of a pool
        std::shared_ptr<Steps> steps;
        std::vector<StampedBlock> results;
    };
    std::vector<Graph> graphs;
    std::vector<StampedBlock> live;
    uint64_t stamps = 0;
    PoolId pools = 0;
    int replays = 0, retired = 0;
    const auto allocate = [&](StreamId stream) {
        const size_t nbytes = 64 + (random() % 6 ? random() % 20'000 : random() % (3 * kMiB));
        auto* data = static_cast<uint64_t*>(allocator.allocate(nbytes, stream));
        return StampedBlock{data, nbytes / 8, ++stamps};
    };
    // Records a program on two captured streams, 10 and 11. Its steps are stored in the order of recording.
    const auto capture = [&](PoolId pool, StreamId replayed_on) {
        Graph graph{pool, replayed_on, std::make_shared<Steps>(), {}};
        allocator.begin_capture(pool, 10);
        allocator.begin_capture(pool, 11);
        for (auto n = 3 + random() % 12; n > 0; --n) {
            if (graph.results.empty() || random() % 2) {
                const StreamId stream = 10 + random() % 2;
                const StampedBlock block = allocate(stream);
                if (!block.data) continue;
                CHECK_EQUAL(allocator.pool_of(block.data), pool);
                graph.steps->push_back([block] { block.write(); });
                if (random() % 3 == 0) allocator.record_use(block.data, 21 - stream);
                graph.results.push_back(block);
            } else {
                const size_t victim = random() % graph.results.size();
                const StampedBlock block = graph.results[victim];
                graph.steps->push_back([block] { block.check(); });
                CHECK(allocator.release(block.data));
                graph.results.erase(graph.results.begin() + static_cast<ptrdiff_t>(victim));
            }
        }
        for (const StampedBlock& block : graph.results) graph.steps->push_back([block] { block.check(); });
        allocator.end_capture(pool);
        graphs.push_back(std::move(graph));
    };
    const auto drain = [&] {
        for (StreamId stream = 0; stream < 4; ++stream)
            while (device.advance(stream)) {}
    };
    for (int i = 0, end = fuzz_operations(60'000); i < end; ++i) {
        const StreamId stream = random() % 4;
        switch (random() % 16) {
            case 0:
            case 1:
            case 2:
            case 3:
            case 4: {
                const StampedBlock block = allocate(stream);
                if (!block.data) break;
                live.push_back(block);
                device.enqueue(stream, [block] { block.write(); });
                device.enqueue(stream, [block] { block.check(); });
                break;
            }
            case 5:
            case 6:
            case 7:
            case 8:
                if (!live.empty()) {
                    const size_t victim = random() % live.size();
                    CHECK(allocator.release(live[victim].data));
                    live[victim] = live.back();
                    live.pop_back();
                }
                break;
            case 9:
                if (graphs.size() < 12) {
                    if (graphs.empty() || random() % 2) capture(++pools, stream);
                    else {
                        const Graph& other = graphs[random() % graphs.size()];
                        capture(other.pool, other.replayed_on);
                    }
                }
                break;
            case 10:
            case 11:
                if (!graphs.empty()) {
                    const Graph& graph = graphs[random() % graphs.size()];
                    device.enqueue(graph.replayed_on, [steps = graph.steps] {
                        for (const auto& step : *steps) step();
                    });
                    ++replays;
                }
                break;
            case 12:
                if (!graphs.empty() && random() % 4 == 0) {
                    // All graphs of one pool are destroyed. Some results remain, and are released as usual.
                    const PoolId pool = graphs[random() % graphs.size()].pool;
                    drain();
                    for (const Graph& graph : graphs) {
                        if (graph.pool != pool) continue;
                        for (const StampedBlock& block : graph.results) {
                            block.write();
                            live.push_back(block);
                        }
                    }
                    std::erase_if(graphs, [pool](const Graph& graph) { return graph.pool == pool; });
                    allocator.retire(pool);
                    for (const StampedBlock& block : live)
                        CHECK(device.holds(reinterpret_cast<char*>(block.data), 8));
                    ++retired;
                } else if (random() % 8 == 0) {
                    drain();
                    allocator.empty_cache();
                }
                break;
            default:
                for (auto n = random() % 6; n > 0; --n) device.advance(stream);
        }
    }
    CHECK(replays > 1000);
    CHECK(retired > 50);
    drain();
    for (const Graph& graph : graphs) {
        for (const StampedBlock& block : graph.results) CHECK(allocator.release(block.data));
        allocator.retire(graph.pool);
    }
    for (const StampedBlock& block : live) CHECK(allocator.release(block.data));
    allocator.empty_cache();
    CHECK_EQUAL(device.mapped, 0u);
    CHECK_EQUAL(device.live_events, 0);
    CHECK_EQUAL(allocator.statistics().active_bytes, 0u);
}

TEST(threads_share_an_allocator) {
    FakeDevice device;
    CachingAllocator allocator(device, {});
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&allocator, t] {
            std::mt19937 random(t);
            std::vector<std::pair<uint64_t*, uint64_t>> live;
            for (uint64_t i = 0; i < 3000; ++i) {
                if (random() % 2) {
                    auto* data = static_cast<uint64_t*>(allocator.allocate(8 + random() % 100'000, t % 2));
                    *data = i << 8 | t;
                    live.emplace_back(data, *data);
                } else if (!live.empty()) {
                    CHECK_EQUAL(*live.back().first, live.back().second);
                    CHECK(allocator.release(live.back().first));
                    live.pop_back();
                }
                if (i % 1000 == 0) allocator.empty_cache();
            }
            for (auto [data, stamp] : live) CHECK(*data == stamp && allocator.release(data));
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQUAL(allocator.statistics().active_bytes, 0u);
}
