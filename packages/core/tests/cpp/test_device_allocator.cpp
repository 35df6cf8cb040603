// sources: src/dispatch/kernel_owners.cpp src/runtime/backend.cpp src/runtime/device_memory.cpp src/runtime/host_table.cpp
// sources: src/runtime/interrupt.cpp src/runtime/error.cpp src/runtime/site.cpp src/runtime/cpu_context.cpp src/runtime/run_on_cpu.cpp
// sources: src/runtime/graphs.cpp src/runtime/caller_locks.cpp src/runtime/random.cpp src/runtime/mersenne_twister.cpp src/runtime/streams.cpp src/runtime/pinned_memory.cpp src/tensor/storage.cpp src/runtime/hooks.cpp
// sources: src/runtime/cpu_allocator.cpp src/runtime/small_blocks.cpp src/runtime/pages.cpp src/runtime/limits.cpp
// sources: src/runtime/caching_allocator.cpp src/tensor/device.cpp

// The allocator services of HostTable, used as by a plug-in: randomised operations on streams that do not run until the
// test advances them, 10^6 of them in the session sanitize(cpp). Every piece of queued work checks that nothing else has written to its block. Memory that is returned to
// the driver is freed, so that a memory checker detects later uses.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "check.h"
#include "dispatch/shared_kernel.h"
#include "rushlight/backend.h"
#include "rushlight/dispatch.h"
#include "rushlight/site.h"
#include "stamped_block.h"

using namespace rushlight;

namespace rushlight {
std::span<Operator* const> operators() { return {}; }
std::span<SharedKernel* const> shared_kernels() { return {}; }
Operator* find_operator(std::string_view) { return nullptr; }
void install_kernel(DeviceType, std::string_view, uint64_t, KernelFn) {}
}  // namespace rushlight

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kStreams = 4;

const HostTable* host;
DeviceAllocator* allocator;
BackendStatus refused;
std::string refusal;

struct Stream {
    std::deque<std::function<void()>> queue;
    uint64_t queued = 0, done = 0;

    void push(std::function<void()> work) {
        queue.push_back(std::move(work));
        ++queued;
    }
    bool advance() {
        if (queue.empty()) return false;
        auto work = std::move(queue.front());
        queue.pop_front();
        work();
        ++done;
        return true;
    }
    void reach(uint64_t ticket) {
        while (done < ticket) advance();
    }
};
Stream streams[kStreams];

struct Mark {
    Stream* stream;
    uint64_t ticket;
};
int marks = 0;
std::map<void*, size_t> segments;
size_t mapped = 0;

bool broken =
    false;  // whether the device fails; its functions then try to name the operator that was queued last
char described[80];

void* map_segment(void*, size_t nbytes) {
    if (broken) {
        const DeviceCall call{.struct_size = sizeof(DeviceCall), .op = "add", .site = 1};
        host->describe(&call, described, sizeof described);
        host->set_error("the device was lost");
        return nullptr;
    }
    if (mapped + nbytes > 96 * kMiB) return nullptr;
    void* data = std::aligned_alloc(512, nbytes);
    segments[data] = nbytes;
    mapped += nbytes;
    return data;
}
void unmap_segment(void*, void* data, size_t nbytes) {
    CHECK(segments.contains(data) && segments[data] == nbytes);
    for (Stream& s : streams) s.reach(s.queued);
    segments.erase(data);
    mapped -= nbytes;
    std::free(data);
}
void* record(void*, void* stream) {
    ++marks;
    auto* s = stream ? static_cast<Stream*>(stream) : &streams[0];
    return new Mark{s, s->queued};
}
int32_t reached(void*, void* mark) {
    auto* m = static_cast<Mark*>(mark);
    return m->stream->done >= m->ticket;
}
void wait(void*, void* mark) {
    auto* m = static_cast<Mark*>(mark);
    m->stream->reach(m->ticket);
}
void destroy(void*, void* mark) {
    --marks;
    delete static_cast<Mark*>(mark);
}

const AllocatorDriver driver{
    sizeof(AllocatorDriver), nullptr, map_segment, unmap_segment, record, reached, wait, destroy};

BackendStatus init(const HostTable* table) {
    host = table;
    AllocatorDriver half = driver;
    half.destroy = nullptr;
    refused = host->create_allocator(0, &half, &allocator);
    refusal = host->last_error();
    CHECK(host->create_allocator(0, nullptr, &allocator) == BackendStatus::Value);
    CHECK(host->create_allocator(-1, &driver, &allocator) == BackendStatus::Value);
    CHECK(host->create_allocator(0, &driver, &allocator) == BackendStatus::Ok);
    DeviceAllocator* second = nullptr;
    return host->create_allocator(0, &driver, &second) == BackendStatus::Value ? BackendStatus::Ok
                                                                               : BackendStatus::Runtime;
}

const Backend backend = [] {
    Backend b{};
    b.struct_size = sizeof(Backend);
    b.abi = kBackendAbi;
    b.name = "fake";
    b.type = DeviceType::Plugin;
    b.probe = [](const HostTable*) { return BackendStatus::Ok; };
    b.init = init;
    b.device_count = [](int32_t* count) {
        *count = 1;
        return BackendStatus::Ok;
    };
    b.copy = [](const DeviceCopy*) { return BackendStatus::Ok; };
    b.synchronize_device = [](int32_t) { return BackendStatus::Ok; };
    b.synchronize_stream = [](int32_t, void*) { return BackendStatus::Ok; };
    b.kernel = [](const char*, uint64_t, KernelPart, BackendKernel*) { return BackendStatus::Ok; };
    return b;
}();
constexpr Device kDevice{DeviceType::Plugin, 0};

}  // namespace

TEST(a_plugin_asks_for_an_allocator_during_init) {
    register_backend(backend);  // the backend has no memory functions
    CHECK(refused == BackendStatus::Value);
    CHECK(refusal.find("all of record, reached, wait and destroy, or none") != std::string::npos);
    DeviceAllocator* late = nullptr;
    CHECK(host->create_allocator(1, &driver, &late) == BackendStatus::Value);
    CHECK(std::string(host->last_error()).find("only during init") != std::string::npos);
}

// Memory of a storage, allocated as operators allocate it. The thread caches small blocks; see Note [Quick blocks].
struct Taken {
    explicit Taken(size_t size) : nbytes(size), data(backend_allocate(kDevice, size, &release, &context)) {}
    void give() const { release(context, data, nbytes); }

    size_t nbytes;
    void (*release)(void*, void*, size_t) = nullptr;
    void* context = nullptr;
    void* data;
};

TEST(a_thread_takes_its_small_blocks_again) {
    empty_cache(kDevice);
    const MemoryStatistics before = memory_statistics(kDevice);
    std::vector<void*> addresses;
    for (int i = 0; i < 3; ++i) {
        const Taken a(100), b(513), large(1 << 20);
        CHECK_EQUAL(memory_statistics(kDevice).allocated_bytes, before.allocated_bytes + 1536 + (1 << 20));
        for (const Taken& taken : {a, b, large}) {
            addresses.push_back(taken.data);
            taken.give();
        }
        const MemoryStatistics now = memory_statistics(kDevice);
        CHECK_EQUAL(now.allocated_bytes, before.allocated_bytes);
        CHECK_EQUAL(now.active_bytes, before.active_bytes);
        // Only the first round requested the small blocks from the allocator.
        CHECK_EQUAL(now.allocation_count, before.allocation_count + 3 + static_cast<uint64_t>(i));
    }
    for (size_t i = 3; i < addresses.size(); ++i) CHECK_EQUAL(addresses[i], addresses[i - 3]);
    CHECK(memory_snapshot(kDevice).find("live") == std::string::npos);
    empty_cache(kDevice);
    CHECK_EQUAL(mapped, 0u);
}

TEST(peaks_count_what_lists_hand_out) {
    std::vector<Taken> some;
    for (int i = 0; i < 4; ++i) some.emplace_back(2048);
    for (const Taken& taken : some) taken.give();
    reset_peak_memory_statistics(kDevice);
    CHECK_EQUAL(memory_statistics(kDevice).allocated_bytes_peak, 0u);
    for (int i = 0; i < 3; ++i) some[static_cast<size_t>(i)] = Taken(2048);
    for (int i = 0; i < 3; ++i) some[static_cast<size_t>(i)].give();
    CHECK_EQUAL(memory_statistics(kDevice).allocated_bytes_peak, 3 * 2048u);
    const Taken one(2048), large(20'000);  // this block is requested from the allocator
    CHECK_EQUAL(memory_statistics(kDevice).allocated_bytes_peak, 2048u + 20'480);
    one.give();
    large.give();
    empty_cache(kDevice);
}

TEST(memory_that_runs_out_takes_back_what_the_thread_keeps) {
    std::vector<Taken> small;
    for (int i = 0; i < 8; ++i) small.emplace_back(4096);
    for (const Taken& taken : small) taken.give();
    const Taken large(94 * kMiB);
    CHECK_EQUAL(mapped, 96 * kMiB);  // including the segment of the small blocks
    const Taken fits(2 * kMiB);
    CHECK_EQUAL(mapped, 96 * kMiB);
    CHECK_RAISES(OutOfMemory, "a block of 2.0 MiB does not fit", Taken(2 * kMiB));
    large.give();
    fits.give();
    empty_cache(kDevice);
}

TEST(a_driver_that_fails_is_not_out_of_memory) {
    static constexpr SiteFunctions kSites{nullptr, [](Site) { return std::string("add at train.py:12"); },
                                          nullptr};
    empty_cache(kDevice);
    broken = true;
    CHECK_RAISES(Runtime, "fake: allocating memory failed: the device was lost", Taken(2 * kMiB));
    broken = false;
    const Taken fits(2 * kMiB);
    CHECK_RAISES(OutOfMemory, "does not fit", Taken(96 * kMiB));
    fits.give();
    empty_cache(kDevice);

    // To name the line, a thread would need the interpreter while it holds the allocator's lock.
    set_site_functions(&kSites);
    const DeviceCall call{.struct_size = sizeof(DeviceCall), .op = "add", .site = 1};
    char text[80];
    host->describe(&call, text, sizeof text);
    CHECK_EQUAL(std::string(text), "add at train.py:12");
    broken = true;
    BackendStatus status = BackendStatus::Ok;
    void* data = nullptr;
    status = host->allocate(allocator, 2 * kMiB, nullptr, &data);
    CHECK(status == BackendStatus::Runtime);
    CHECK_EQUAL(std::string(described), "add");
    broken = false;
    set_site_functions(nullptr);
}

// Three threads allocate and release mostly small blocks, and pass some of them to other threads, which release them. The
// owner of a block fills it with a stamp.
TEST(blocks_of_threads_never_overlap) {
    struct Owned {
        Taken block;
        uint64_t stamp;
        void write() const { std::fill_n(words(), count(), stamp); }
        void check() const {
            CHECK(std::all_of(words(), words() + count(), [this](uint64_t word) { return word == stamp; }));
        }
        uint64_t* words() const { return static_cast<uint64_t*>(block.data); }
        size_t count() const { return block.nbytes / 8; }
    };
    std::mutex mutex;
    std::vector<Owned> passed_on;
    const int operations = fuzz_operations(100'000) / 3;
    std::atomic<int> full{0};
    const auto work = [&](unsigned number) {
        std::mt19937 random(number);
        std::vector<Owned> live;
        for (int i = 0; i < operations; ++i) {
            switch (random() % 16) {
                case 0: {  // pass a block to another thread, and take one from it
                    std::lock_guard lock(mutex);
                    if (!live.empty()) passed_on.push_back(live.back()), live.pop_back();
                    if (!passed_on.empty())
                        live.push_back(passed_on.front()), passed_on.erase(passed_on.begin());
                    break;
                }
                case 1:
                    if (random() % 64 == 0) empty_cache(kDevice);
                    else if (random() % 8 == 0) {
                        const MemoryStatistics s = memory_statistics(kDevice);
                        CHECK(s.allocated_bytes <= s.reserved_bytes);
                        CHECK(s.allocated_bytes <= s.allocated_bytes_peak);
                    }
                    break;
                default:
                    if (random() % 2) {
                        const size_t nbytes =
                            8 + (random() % 200 ? random() % 10'000 : random() % (8 * kMiB)) / 8 * 8;
                        try {
                            live.push_back(
                                {Taken(nbytes), uint64_t{number} << 32 | static_cast<unsigned>(i)});
                            live.back().write();
                        } catch (const Error&) { ++full; }
                    } else if (!live.empty()) {
                        std::swap(live[random() % live.size()], live.back());
                        live.back().check();
                        live.back().block.give();
                        live.pop_back();
                    }
            }
        }
        for (const Owned& owned : live) {
            owned.check();
            owned.block.give();
        }
    };
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) threads.emplace_back(work, t);
    for (std::thread& thread : threads) thread.join();
    for (const Owned& owned : passed_on) {
        owned.check();
        owned.block.give();
    }
    empty_cache(kDevice);  // the threads returned their cached blocks when they ended
    const MemoryStatistics s = memory_statistics(kDevice);
    CHECK_EQUAL(s.allocated_bytes, 0u);
    CHECK_EQUAL(s.reserved_bytes, 0u);
    CHECK_EQUAL(mapped, 0u);
}

// From this test on, the process has several streams.
TEST(a_block_that_another_stream_uses_is_not_kept) {
    const Taken kept(1000), used(1000);
    kept.give();
    CHECK(host->record_use(allocator, used.data, &streams[1]) == BackendStatus::Ok);
    bool read = false;
    streams[1].push([&] { read = true; });
    used.give();
    std::vector<Taken> others;
    for (int i = 0; i < 20; ++i) {
        others.emplace_back(1000);
        CHECK(read || others.back().data != used.data);
    }
    CHECK(!read);
    for (const Taken& taken : others) taken.give();
    while (streams[1].advance()) {}
    empty_cache(kDevice);
    CHECK_EQUAL(mapped, 0u);
}

TEST(work_never_meets_foreign_work_in_its_memory) {
    std::mt19937 random(3);
    std::vector<StampedBlock> live;
    OwnedRanges owned;
    uint64_t stamps = 0;
    int full = 0;
    for (int i = 0, end = fuzz_operations(100'000); i < end; ++i) {
        const int own = static_cast<int>(random() % kStreams);
        switch (random() % 8) {
            case 0:
            case 1:
            case 2: {
                const size_t nbytes = 64 + (random() % 6 ? random() % 20'000 : random() % (6 * kMiB));
                void* data = nullptr;
                const BackendStatus status =
                    host->allocate(allocator, nbytes, own ? &streams[own] : nullptr, &data);
                if (status != BackendStatus::Ok) {
                    CHECK(status == BackendStatus::OutOfMemory && !data);
                    CHECK(std::string(host->last_error()).find("the largest blocks are") !=
                          std::string::npos);
                    ++full;
                    break;
                }
                const StampedBlock block{static_cast<uint64_t*>(data), nbytes / 8, ++stamps};
                live.push_back(block);
                owned.add(data, nbytes);
                streams[own].push([block] { block.write(); });
                // Each block is read on its own stream, or after an event on another stream.
                int reader = own;
                if (random() % 3 == 0) {
                    reader = static_cast<int>(random() % kStreams);
                    const uint64_t ticket = streams[own].queued;
                    if (reader != own) streams[reader].push([own, ticket] { streams[own].reach(ticket); });
                    CHECK(host->record_use(allocator, data, reader ? &streams[reader] : nullptr) ==
                          BackendStatus::Ok);
                }
                streams[reader].push([block] { block.check(); });
                break;
            }
            case 3:
            case 4:
            case 5:
                if (!live.empty()) {
                    const size_t victim = random() % live.size();
                    owned.remove(live[victim].data);
                    CHECK(host->release(allocator, live[victim].data) == BackendStatus::Ok);
                    CHECK(host->release(allocator, live[victim].data) == BackendStatus::Runtime);
                    live[victim] = live.back();
                    live.pop_back();
                }
                break;
            default:
                for (auto n = random() % 6; n > 0; --n) streams[own].advance();
        }
        if (i % 20'000 == 19'999) {  // released memory is freed, and no work may access it
            for (Stream& s : streams)
                while (s.advance()) {}
            empty_cache(kDevice);
        }
    }
    CHECK(full > 0);
    CHECK(stamps > 10'000);
    for (const StampedBlock& block : live) CHECK(host->release(allocator, block.data) == BackendStatus::Ok);
    for (Stream& s : streams)
        while (s.advance()) {}
    empty_cache(kDevice);
    const MemoryStatistics held = memory_statistics(kDevice);
    CHECK_EQUAL(held.active_bytes, 0u);
    CHECK_EQUAL(held.reserved_bytes, 0u);
    CHECK_EQUAL(mapped, 0u);
    CHECK_EQUAL(marks, 0);
}
