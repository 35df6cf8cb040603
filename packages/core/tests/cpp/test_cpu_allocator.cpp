// sources: src/runtime/caching_allocator.cpp src/runtime/site.cpp src/runtime/cpu_allocator.cpp
// sources: src/runtime/small_blocks.cpp src/runtime/pages.cpp src/runtime/limits.cpp src/runtime/error.cpp

// The allocator of host memory, tested through its interface: small and large blocks, threads, forks, other allocators.
#include "rushlight/allocator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "check.h"
#include "runtime/pages.h"

using namespace rushlight;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Returns whether blocks are cached. Otherwise each block is allocated by malloc, as under a sanitizer.
bool caching() {
    const char* choice = std::getenv("RUSHLIGHT_CPU_ALLOCATOR");
    if (choice && *choice) return std::strcmp(choice, "caching") == 0;
    return !kSanitized;
}

uint64_t allocated() { return memory_statistics().allocated_bytes; }

/// Runs `f` in a forked child and returns whether all checks held there.
template <class F>
bool holds_in_child(F&& f) {
    pid_t child = fork();
    if (child == 0) {
        alarm(20);  // ends a child that hangs
        int before = check::failures;
        f();
        _exit(check::failures != before);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST(every_size_is_aligned_and_its_own) {
    std::vector<std::pair<unsigned char*, size_t>> live;
    for (size_t nbytes :
         {1, 8, 63, 64, 65, 127, 128, 129, 1000, 4032, 4095, 4096, 4097, 5000, 65536, 1048576, 1048577}) {
        for (int i = 0; i < 70; ++i) {
            auto* data = static_cast<unsigned char*>(cpu_allocate(nbytes));
            CHECK_EQUAL(reinterpret_cast<uintptr_t>(data) % 64, 0u);
            std::memset(data, static_cast<int>(live.size() % 251), nbytes);
            live.emplace_back(data, nbytes);
        }
    }
    for (size_t i = 0; i < live.size(); ++i) {
        auto [data, nbytes] = live[i];
        CHECK(data[0] == i % 251 && data[nbytes / 2] == i % 251 && data[nbytes - 1] == i % 251);
        cpu_release(data, nbytes);
    }
    CHECK(cpu_allocate(0) == nullptr);
    cpu_release(nullptr, 0);
    CHECK_EQUAL(allocated(), 0u);
}

TEST(a_released_block_is_the_next_one) {
    if (!caching()) return;
    for (size_t nbytes : {size_t{64}, size_t{4096}, size_t{65536}, 64 * kMiB}) {
        void* data = cpu_allocate(nbytes);
        cpu_release(data, nbytes);
        CHECK_EQUAL(cpu_allocate(nbytes), data);
        cpu_release(data, nbytes);
    }
}

TEST(statistics_follow_the_blocks) {
    uint64_t before = allocated();
    void* small = cpu_allocate(100);
    void* large = cpu_allocate(3 * kMiB);
    uint64_t now = allocated() - before;
    CHECK(now >= 3 * kMiB + 100 && now <= 3 * kMiB + 256);
    CHECK(memory_statistics().allocated_bytes_peak >= now);
    CHECK(memory_statistics().reserved_bytes >= now);
    cpu_release(large, 3 * kMiB);
    cpu_release(small, 100);
    CHECK_EQUAL(allocated(), before);
    reset_peak_memory_statistics();
    CHECK_EQUAL(memory_statistics().allocated_bytes_peak, before);
}

TEST(an_empty_cache_holds_nothing) {
    if (!caching()) return;
    std::vector<void*> live;
    for (int i = 0; i < 5000; ++i) live.push_back(cpu_allocate(512));
    void* large = cpu_allocate(30 * kMiB);
    for (void* data : live) cpu_release(data, 512);
    cpu_release(large, 30 * kMiB);
    CHECK(memory_statistics().reserved_bytes >= 30 * kMiB);
    empty_cache();
    CHECK_EQUAL(memory_statistics().reserved_bytes, 0u);
    CHECK_EQUAL(memory_snapshot(), "[]");
    cpu_release(cpu_allocate(512), 512);  // the allocator still works
}

namespace {

/// A clock that shows the same time until a test advances it. Each clock starts an hour after the previous one, so that no
/// earlier use of memory counts as recent.
struct FakeClock {
    FakeClock() {
        now = std::max(now, former()) + 3'600'000;
        detail::coarse_clock_ms = []() noexcept { return now; };
    }
    ~FakeClock() { detail::coarse_clock_ms = former; }

    static inline uint64_t now = 0;
    uint64_t (*former)() noexcept = detail::coarse_clock_ms;
};

void small_calls(int n, uint64_t interval_ms) {
    for (int i = 0; i < n; ++i) {
        FakeClock::now += interval_ms;
        cpu_release(cpu_allocate(64), 64);
    }
}

/// Allocates blocks and releases all of them. Returns the reserved bytes before the release.
uint64_t use(size_t n, size_t nbytes) {
    std::vector<void*> blocks(n);
    for (void*& data : blocks) data = cpu_allocate(nbytes);
    uint64_t reserved = memory_statistics().reserved_bytes;
    for (void* data : blocks) cpu_release(data, nbytes);
    return reserved;
}

}  // namespace

TEST(unused_memory_goes_back_while_small_calls_follow) {
    if (!caching()) return;
    // Many small calls within a second, one every ten milliseconds, one every second; small and large blocks.
    for (auto [calls, interval_ms] : {std::pair{100'000, 0}, {130, 10}, {2, 1000}}) {
        for (size_t nbytes : {20 * kMiB, size_t{10'000}, size_t{512}}) {
            empty_cache();
            FakeClock clock;
            uint64_t used = use(20 * kMiB / nbytes, nbytes);
            CHECK(used >= 20 * kMiB - nbytes);
            small_calls(5, 100);
            CHECK(memory_statistics().reserved_bytes >= used);
            if (interval_ms == 0) FakeClock::now += 1000;
            small_calls(calls, static_cast<uint64_t>(interval_ms));
            // The blocks of one size that the thread caches, and the slab of the small calls, remain.
            CHECK(memory_statistics().reserved_bytes <= 3 * detail::kHugePage);
        }
    }
}

TEST(small_calls_that_become_rare_return_memory_within_some_calls) {
    if (!caching()) return;
    empty_cache();
    FakeClock clock;
    use(1, 20 * kMiB);
    small_calls(1000, 0);
    small_calls(32, 1000);
    CHECK(memory_statistics().reserved_bytes <= detail::kHugePage);
}

TEST(a_few_small_calls_once_in_a_while_return_memory) {
    if (!caching()) return;
    for (uint64_t interval_ms : {300, 700}) {
        for (int calls : {2, 5, 20}) {  // one after another, and then a pause
            empty_cache();
            FakeClock clock;
            use(1, 20 * kMiB);
            for (uint64_t passed = 0; passed < 2000; passed += interval_ms) {
                small_calls(1, interval_ms);
                small_calls(calls - 1, 0);
            }
            CHECK(memory_statistics().reserved_bytes <= detail::kHugePage);
        }
    }
}

TEST(a_thread_keeps_a_thousand_small_blocks_for_a_while) {
    if (!caching()) return;
    empty_cache();
    FakeClock clock;
    use(1000, 128);
    const detail::SmallBin& bin = detail::small_cache->bins[2];
    CHECK(bin.count >= 1000);  // including the rest of the last batch
    uint64_t refills = memory_statistics().allocation_count;
    use(1000, 128);
    CHECK_EQUAL(memory_statistics().allocation_count, refills);
    FakeClock::now += 1000;
    small_calls(40, 0);
    CHECK_EQUAL(bin.count, 256u);
    use(1000, 128);  // the remaining blocks are valid
    CHECK(bin.count >= 1000);
}

TEST(a_loop_keeps_small_blocks_for_its_next_step) {
    if (!caching()) return;
    empty_cache();
    FakeClock clock;
    for (int step = 0; step < 8; ++step) {
        uint64_t before = memory_statistics().map_count;
        use(100'000, 512);
        small_calls(200, 100);
        if (step >= 3) CHECK_EQUAL(memory_statistics().map_count, before);
    }
    small_calls(1000, 100);
    CHECK(memory_statistics().reserved_bytes <= 3 * detail::kHugePage);
}

TEST(blocks_may_die_on_another_thread) {
    uint64_t before = allocated();
    std::vector<std::pair<void*, size_t>> blocks;
    std::thread maker([&] {
        for (size_t i = 0; i < 20'000; ++i) {
            size_t nbytes = i % 100 ? 1 + i * 37 % 4096 : 10'000;
            blocks.emplace_back(cpu_allocate(nbytes), nbytes);
            std::memset(blocks.back().first, 1, nbytes);
        }
    });
    maker.join();
    std::thread([&] {
        for (auto [data, nbytes] : blocks) cpu_release(data, nbytes);
    }).join();
    CHECK_EQUAL(allocated(), before);  // the caches of both threads were returned when they ended
    if (caching()) {
        empty_cache();
        CHECK_EQUAL(memory_statistics().reserved_bytes, 0u);
    }
}

TEST(threads_pass_blocks_around) {
    struct alignas(64) Slot {
        std::atomic<uint64_t*> block{nullptr};
    };
    static Slot slots[64];
    uint64_t before = allocated();
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            std::mt19937 random(t);
            for (int i = 0; i < 20'000; ++i) {
                size_t at = random() % 64, nbytes = 64 * (1 + at) + (at == 63 ? 5000 : 0);
                auto* fresh = static_cast<uint64_t*>(cpu_allocate(nbytes));
                fresh[0] = fresh[nbytes / 8 - 1] = reinterpret_cast<uint64_t>(fresh);
                if (uint64_t* old = slots[at].block.exchange(fresh)) {
                    CHECK(old[0] == reinterpret_cast<uint64_t>(old) && old[nbytes / 8 - 1] == old[0]);
                    cpu_release(old, nbytes);
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t at = 0; at < 64; ++at) {
        size_t nbytes = 64 * (1 + at) + (at == 63 ? 5000 : 0);
        if (uint64_t* old = slots[at].block.exchange(nullptr)) cpu_release(old, nbytes);
    }
    CHECK_EQUAL(allocated(), before);
}

TEST(a_child_may_use_everything_and_disturbs_nobody) {
    constexpr int kBlocks = 600;
    std::vector<std::pair<unsigned char*, size_t>> live;
    for (int i = 0; i < kBlocks; ++i) {
        size_t nbytes = i % 3 == 0 ? 256 : i % 3 == 1 ? 4096 : 100'000;
        live.emplace_back(static_cast<unsigned char*>(cpu_allocate(nbytes)), nbytes);
        std::memset(live.back().first, i % 251, nbytes);
    }
    for (size_t i = 0; i < kBlocks; i += 2) cpu_release(live[i].first, live[i].second);

    std::atomic<bool> stop{false};
    // This thread holds our locks from time to time while the main thread forks. The runtime of a sanitizer has locks,
    // too, and would hang.
    std::thread busy;
    if (caching() && !kSanitized) {
        busy = std::thread([&] {
            while (!stop) {
                void* data[40];
                for (void*& d : data) d = cpu_allocate(2048);
                for (void* d : data) cpu_release(d, 2048);
                cpu_release(cpu_allocate(50'000), 50'000);
            }
        });
    }
    for (int round = 0; round < 5; ++round) {
        bool held = holds_in_child([&] {
            std::map<void*, int> released;
            for (int i = 1; i < kBlocks; i += 2) {
                auto [data, nbytes] = live[static_cast<size_t>(i)];
                CHECK(data[0] == i % 251 && data[nbytes - 1] == i % 251);
                cpu_release(data, nbytes);
                if (nbytes <= 4096) released[data] = i;
            }
            for (int i = 0; i < 2000; ++i) {
                size_t nbytes = i % 2 ? 256 : i % 4 ? 4096 : 100'000;
                auto* data = static_cast<unsigned char*>(cpu_allocate(nbytes));
                // The child does not allocate inherited memory again, because writes to it would copy the parent's
                // pages. (The addresses of a large block may be used again after its segment was unmapped.)
                if (caching()) CHECK(!released.contains(data));
                std::memset(data, 255, nbytes);
                if (i % 3) cpu_release(data, nbytes);
            }
#if !defined(__SANITIZE_THREAD__)  // which does not support new threads after a fork
            std::thread([] { cpu_release(cpu_allocate(300), 300); }).join();
#endif
            empty_cache();
        });
        CHECK(held);
    }
    stop = true;
    if (busy.joinable()) busy.join();
    for (int i = 1; i < kBlocks; i += 2) {
        auto [data, nbytes] = live[static_cast<size_t>(i)];
        CHECK(data[0] == i % 251 && data[nbytes - 1] == i % 251);
        cpu_release(data, nbytes);
    }
}

TEST(a_child_caches_its_own_blocks) {
    if (!caching()) return;
    CHECK(holds_in_child([] {
        std::vector<void*> blocks;
        for (int i = 0; i < 1000; ++i) blocks.push_back(cpu_allocate(640));
        void* last = blocks.back();
        for (void* data : blocks) cpu_release(data, 640);
        CHECK_EQUAL(cpu_allocate(640), last);
        CHECK(holds_in_child([] { cpu_release(cpu_allocate(640), 640); }));  // a grandchild can allocate, too
    }));
}

TEST(out_of_memory_is_an_error_with_numbers) {
    if (!caching()) return;
    uint64_t former = set_memory_limit(100 * kMiB);
    void* held = cpu_allocate(60 * kMiB);
    CHECK_RAISES(OutOfMemory, "a block of 50.0 MiB does not fit: 60.0 MiB are in use",
                 cpu_allocate(50 * kMiB));
    CHECK_RAISES(OutOfMemory, "the limit is 100.0 MiB", cpu_allocate(SIZE_MAX / 2));
    CHECK_RAISES(OutOfMemory, "hint", cpu_allocate(SIZE_MAX));
    cpu_release(held, 60 * kMiB);
    void* fits = cpu_allocate(50 * kMiB);  // the cached 60 MiB are reused
    cpu_release(fits, 50 * kMiB);
    CHECK_EQUAL(set_memory_limit(0), 100 * kMiB);
    CHECK_EQUAL(set_memory_limit(0), former);
}

namespace {

/// Counts blocks, and puts a guard after each block to detect writes beyond its end.
struct GuardAllocator {
    static constexpr size_t kGuard = 64;
    std::map<void*, size_t> live;
    int made = 0;
    bool exhausted = false, crooked = false;

    static void* allocate(void* self, size_t nbytes) {
        auto* guard = static_cast<GuardAllocator*>(self);
        if (guard->exhausted) return nullptr;
        auto* data = static_cast<char*>(std::aligned_alloc(64, (nbytes + 63) / 64 * 64 + 2 * kGuard));
        if (guard->crooked) data += 8;
        std::memset(data + nbytes, 0x77, kGuard);
        guard->live[data] = nbytes;
        ++guard->made;
        return data;
    }
    static void release(void* self, void* data, size_t nbytes) {
        auto* guard = static_cast<GuardAllocator*>(self);
        CHECK_EQUAL(guard->live[data], nbytes);
        for (size_t i = 0; i < kGuard; ++i) CHECK(static_cast<char*>(data)[nbytes + i] == 0x77);
        guard->live.erase(data);
        std::free(guard->crooked ? static_cast<char*>(data) - 8 : data);
    }
    AllocatorInterface interface() { return {sizeof(AllocatorInterface), this, allocate, release}; }
};

}  // namespace

TEST(another_allocator_serves) {
    GuardAllocator guard;
    AllocatorInterface interface = guard.interface();
    Allocation ours = rushlight::allocate(1000);
    CHECK(set_allocator(&interface) == nullptr);
    Allocation theirs = rushlight::allocate(1000), empty = rushlight::allocate(0);
    CHECK_EQUAL(guard.made, 1);
    CHECK(empty.data == nullptr);
    std::memset(theirs.data, 0, 1000);
    CHECK(set_allocator(nullptr) == &interface);
    // A block is released by the allocator that made it, even after that allocator was replaced.
    release(theirs, 1000);
    release(empty, 0);
    release(ours, 1000);
    CHECK_EQUAL(guard.live.size(), 0u);
    release(rushlight::allocate(10), 10);
    CHECK_EQUAL(guard.made, 1);
}

TEST(a_bad_allocator_gives_errors) {
    GuardAllocator guard;
    AllocatorInterface interface = guard.interface();
    set_allocator(&interface);
    guard.exhausted = true;
    CHECK_RAISES(OutOfMemory, "could not allocate 10 bytes", rushlight::allocate(10));
    guard.exhausted = false;
    guard.crooked = true;
    CHECK_RAISES(Runtime, "is not a multiple of 64", rushlight::allocate(10));
    CHECK_EQUAL(guard.live.size(), 0u);
    set_allocator(nullptr);
    AllocatorInterface old = {8, nullptr, nullptr, nullptr};
    CHECK_RAISES(Value, "got a struct of 8 bytes", set_allocator(&old));
    AllocatorInterface hollow = {sizeof(AllocatorInterface), nullptr, nullptr, nullptr};
    CHECK_RAISES(Value, "a function is missing", set_allocator(&hollow));
}
