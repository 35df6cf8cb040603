// Memory of devices: from a plug-in's own allocator, or from core's caching allocator over a plug-in's driver.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/attached.h"
#include "runtime/caching_allocator.h"
#include "runtime/pages.h"
#include "rushlight/graphs.h"
#include "rushlight/storage.h"

// Note [Streams and memory]
// A block belongs to the stream on which it was allocated, and its release is ordered only after the work of that
// stream. So each use on another stream must be reported. The allocator then waits for that stream, too, before it
// reuses the block. Core reports every tensor that an operator or a copy uses on a stream other than the tensor's own.
// The context of a storage contains its stream. While a process uses only default streams, nothing is reported.

namespace rushlight {

/// A caching allocator over the functions of a plug-in.
struct DeviceAllocator {
    DeviceAllocator(const detail::Attached& attached, const AllocatorDriver& given)
        : owner(attached), driver(given) {}

    struct PluginDriver final : detail::Driver {
        explicit PluginDriver(const AllocatorDriver& given) {
            std::memcpy(&c, &given, std::min<size_t>(given.struct_size, sizeof c));
        }
        void* map(size_t nbytes) noexcept override {
            const detail::UnderAllocatorLock scope;
            return c.map(c.self, nbytes);
        }
        void unmap(void* data, size_t nbytes) noexcept override {
            const detail::UnderAllocatorLock scope;
            c.unmap(c.self, data, nbytes);
        }
        // Constant, so unused memory does not age and is kept.
        uint64_t now_ms() noexcept override { return 0; }
        Event record(detail::StreamId stream) noexcept override {
            const detail::UnderAllocatorLock scope;
            return c.record ? c.record(c.self, reinterpret_cast<void*>(stream)) : nullptr;
        }
        bool reached(Event mark) noexcept override {
            const detail::UnderAllocatorLock scope;
            return !c.reached || c.reached(c.self, mark);
        }
        void wait(Event mark) noexcept override {
            const detail::UnderAllocatorLock scope;
            if (c.wait) c.wait(c.self, mark);
        }
        void destroy(Event mark) noexcept override {
            const detail::UnderAllocatorLock scope;
            if (c.destroy) c.destroy(c.self, mark);
        }

        AllocatorDriver c = {};
    };

    const detail::Attached& owner;
    PluginDriver driver;
    detail::CachingAllocator blocks{driver, {}};
    const int position = std::min(made_before++, detail::kQuickPositions);

    static inline std::atomic<int> made_before{0};
};

namespace detail {
namespace {

detail::StreamId id(void* stream) { return reinterpret_cast<StreamId>(stream); }

// --- Note [Quick blocks] ---

static_assert(CachingConfig{}.rounding == QuickBlocks::kGrain);

struct ThreadList {
    DeviceAllocator* from;
    QuickBlocks blocks;
};
// The array has one element more than there are positions, and the last element stays null.
constinit thread_local ThreadList* thread_lists[kQuickPositions + 1] RL_TLS_MODEL = {};
constinit thread_local bool thread_ends RL_TLS_MODEL = false;

/// In a forked child, the devices and their locks belong to the parent. A child does not use the blocks in its lists.
bool usable(const DeviceAllocator& from) { return !from.owner.forked.load(std::memory_order_relaxed); }

/// Releases all blocks of this thread's list. Returns whether there were any.
bool drain_quick(DeviceAllocator& from) {
    ThreadList* list = thread_lists[from.position];
    if (!list || list->blocks.bytes() == 0) return false;
    from.blocks.take_back(list->blocks);
    return true;
}

struct ThreadEnd {
    ~ThreadEnd() {
        thread_ends = true;  // memory that is released later goes directly to the allocator
        for (ThreadList*& list : thread_lists) {
            if (!list) continue;
            if (usable(*list->from)) list->from->blocks.remove(list->blocks);
            delete std::exchange(list, nullptr);
        }
    }
};

[[gnu::noinline]] void make_quick(DeviceAllocator& from) noexcept try {
    if (thread_ends || from.position == kQuickPositions) return;
    static thread_local ThreadEnd end;
    (void)&end;
    auto list = std::make_unique<ThreadList>(&from);
    from.blocks.add(list->blocks);
    thread_lists[from.position] = list.release();
} catch (const std::bad_alloc&) {}  // without a list, this thread uses the allocator

bool quick(size_t nbytes) {
    return nbytes <= QuickBlocks::kLimit && !several_streams.load(std::memory_order_relaxed);
}

/// Returns a block of this thread's list, or null.
void* take_quick(const MemorySource& from, size_t nbytes) {
    ThreadList* list = thread_lists[from.position];
    return list && quick(nbytes) ? list->blocks.take(nbytes) : nullptr;
}
bool put_quick(const MemorySource& to, void* data, size_t nbytes) {
    ThreadList* list = thread_lists[to.position];
    return list && quick(nbytes) && list->blocks.put(data, nbytes);
}

[[gnu::noinline]] BackendStatus allocate_slow(DeviceAllocator& from, size_t nbytes, void* stream,
                                              void** data) {
    if (several_streams.load(std::memory_order_relaxed)) drain_quick(from);
    BackendStatus status = allocator_allocate(&from, nbytes, stream, data);
    if (status == BackendStatus::OutOfMemory && drain_quick(from))
        status = allocator_allocate(&from, nbytes, stream, data);
    return status;
}

[[gnu::noinline]] void release_slow(DeviceAllocator& from, void* data, size_t nbytes) noexcept {
    if (quick(nbytes) && !thread_lists[from.position]) {
        make_quick(from);
        if (ThreadList* list = thread_lists[from.position]; list && list->blocks.put(data, nbytes)) return;
    }
    // A failure cannot be reported here; the next call of the device reports its state.
    (void)from.blocks.release(data);
}

void fail_out_of_memory(DeviceAllocator& from, size_t nbytes) {
    constexpr double kMiB = 1 << 20;
    const MemoryStatistics s = from.blocks.statistics();
    char text[400];
    std::snprintf(text, sizeof text,
                  "a block of %.1f MiB does not fit: %.1f MiB are in use, %.1f MiB are cached",
                  static_cast<double>(nbytes) / kMiB, static_cast<double>(s.allocated_bytes) / kMiB,
                  static_cast<double>(s.reserved_bytes - s.allocated_bytes) / kMiB);
    std::string all = text;
    if (s.limit_bytes != UINT64_MAX) {
        std::snprintf(text, sizeof text, ", the limit is %.1f MiB",
                      static_cast<double>(s.limit_bytes) / kMiB);
        all += text;
    }
    host_table.set_error((all + from.blocks.largest_live(5)).c_str());
}

}  // namespace

BackendStatus create_allocator(int32_t index, const AllocatorDriver* driver, DeviceAllocator** made) {
    const auto refuse = [](const char* text) {
        host_table.set_error(text);
        return BackendStatus::Value;
    };
    if (!attaching) return refuse("create_allocator: a plug-in may request an allocator only during init");
    if (index < 0 || index >= kMaxDevices) return refuse("create_allocator: no such device");
    if (!driver || driver->struct_size < offsetof(AllocatorDriver, record) || !driver->map || !driver->unmap)
        return refuse("create_allocator: the driver must have the functions map and unmap");
    DeviceState& state = *attaching->devices[static_cast<size_t>(index)];
    if (state.allocator) return refuse("create_allocator: the device already has an allocator");
    auto fresh = std::make_unique<DeviceAllocator>(*attaching, *driver);
    const AllocatorDriver& c = fresh->driver.c;
    const int events = !!c.record + !!c.reached + !!c.wait + !!c.destroy;
    if (events != 0 && events != 4)
        return refuse(
            "create_allocator: the driver must have all of record, reached, wait and destroy, or none");
    state.default_source.position = fresh->position;
    // Never destroyed: tensors may outlive main().
    *made = state.allocator = fresh.release();
    return BackendStatus::Ok;
}

BackendStatus allocator_allocate(DeviceAllocator* from, size_t nbytes, void* stream, void** data) {
    backend_error.clear();
    *data = from->blocks.allocate(nbytes, id(stream));
    if (*data) return BackendStatus::Ok;
    if (!backend_error.empty())
        return BackendStatus::Runtime;  // the driver failed, although there may be memory left
    fail_out_of_memory(*from, nbytes);
    return BackendStatus::OutOfMemory;
}

BackendStatus allocator_release(DeviceAllocator* from, void* data) {
    if (from->blocks.release(data)) return BackendStatus::Ok;
    host_table.set_error("release: there is no live block at this address");
    return BackendStatus::Runtime;
}

BackendStatus allocator_record_use(DeviceAllocator* from, void* data, void* stream) {
    if (stream) several_streams.store(true, std::memory_order_relaxed);
    from->blocks.record_use(data, id(stream));
    return BackendStatus::Ok;
}

BackendStatus allocate_on(const Attached& owner, int32_t index, size_t nbytes, void* stream, void** data) {
    const DeviceState& state = *owner.devices[static_cast<size_t>(index)];
    if (!state.allocator) return owner.backend.allocate(index, nbytes, stream, data);
    *data = take_quick(state.default_source, nbytes);
    return *data ? BackendStatus::Ok : allocate_slow(*state.allocator, nbytes, stream, data);
}

void release_on(const Attached& owner, int32_t index, void* data, size_t nbytes) {
    if (owner.forked.load(std::memory_order_relaxed)) return;
    const DeviceState& state = *owner.devices[static_cast<size_t>(index)];
    if (!state.allocator) owner.backend.release(index, data, nbytes);
    else if (!put_quick(state.default_source, data, nbytes)) release_slow(*state.allocator, data, nbytes);
}

std::atomic<bool> several_streams{false};

namespace {

MemorySource* source_of(const Attached& owner, int32_t index, void* stream) {
    DeviceState& state = *owner.devices[static_cast<size_t>(index)];
    if (!stream) return &state.default_source;
    std::lock_guard lock(state.mutex);
    for (auto& known : state.other_sources)
        if (known->stream == stream) return known.get();
    return state.other_sources.emplace_back(new MemorySource{&owner, index, stream}).get();
}

void release_memory(void* context, void* data, size_t nbytes) {
    auto* source = static_cast<const MemorySource*>(context);
    if (data && !put_quick(*source, data, nbytes)) release_on(*source->attached, source->index, data, nbytes);
}

}  // namespace

void record_current_use_slow(const Storage& storage) {
    const Device device = storage.device();
    if (device.type == DeviceType::CPU || device.type == DeviceType::Meta) return;
    void* stream = current_stream(device);
    if (captures.load(std::memory_order_relaxed)) [[unlikely]]
        keep_in_capture(storage, device, stream);
    record_stream_use(storage, stream);
}

}  // namespace detail

using namespace detail;

void* backend_allocate(Device device, size_t nbytes, void (**release)(void*, void*, size_t), void** context) {
    const Attached& owner = resolve_attached(device);
    void* stream = current_stream(device);
    *release = release_memory;
    MemorySource* source = source_of(owner, device.index, stream);
    *context = source;
    if (nbytes == 0) return nullptr;
    if (void* data = take_quick(*source, nbytes)) [[likely]]
        return data;
    void* data = nullptr;
    BackendStatus status = allocate_on(owner, device.index, nbytes, stream, &data);
    if (status == BackendStatus::OutOfMemory) [[unlikely]] {
        const std::string text = std::move(backend_error);
        throw_out_of_memory(
            "%s: out of memory: %s\nhint: drop tensors that are no longer needed, or use smaller batches",
            name(device).c_str(), text.empty() ? "the device has no memory left" : text.c_str());
    }
    check_backend(status, owner.backend, "allocating memory");
    if (nbytes >= kSiteBytes) {
        if (DeviceAllocator* own = owner.devices[static_cast<size_t>(device.index)]->allocator)
            own->blocks.set_site(data, current_site());
    }
    return data;
}

void record_stream_use(const Storage& storage, void* stream) {
    if (storage.release_function() != release_memory || !storage.data()) return;
    auto* source = static_cast<const MemorySource*>(storage.release_context());
    if (source->stream == stream || source->attached->forked.load(std::memory_order_relaxed)) return;
    const Attached& owner = *source->attached;
    if (DeviceAllocator* own = owner.devices[static_cast<size_t>(source->index)]->allocator) {
        allocator_record_use(own, storage.data(), stream);
    } else if (owner.backend.record_use) {
        check_backend(owner.backend.record_use(source->index, storage.data(), stream), owner.backend,
                      "recording a stream");
    }
}

namespace {
DeviceAllocator& allocator_of(const char* what, Device device) {
    const Attached& owner = attached_for(what, device);
    DeviceAllocator* own = owner.devices[static_cast<size_t>(device.index)]->allocator;
    RL_CHECK(own, throw_not_implemented,
             "%s(%s): not supported, because the backend of this device uses its own allocator", what,
             name(device).c_str());
    return *own;
}
}  // namespace

CachingAllocator& detail::graph_memory(Device device) { return allocator_of("graphs", device).blocks; }

uint64_t detail::memory_pool_of(const Storage& storage) {
    if (storage.release_function() != release_memory || !storage.data()) return 0;
    auto* source = static_cast<const MemorySource*>(storage.release_context());
    DeviceAllocator* own = source->attached->devices[static_cast<size_t>(source->index)]->allocator;
    return own ? own->blocks.pool_of(storage.data()) : 0;
}

MemoryStatistics memory_statistics(Device device) {
    return allocator_of("memory_stats", device).blocks.statistics();
}
void reset_peak_memory_statistics(Device device) {
    allocator_of("reset_peak_memory_stats", device).blocks.reset_peaks();
}
std::string memory_snapshot(Device device) {
    DeviceAllocator& from = allocator_of("memory_snapshot", device);
    drain_quick(from);
    return from.blocks.snapshot();
}
void empty_cache(Device device) {
    DeviceAllocator& from = allocator_of("empty_cache", device);
    drain_quick(from);
    from.blocks.empty_cache();
}
uint64_t set_memory_limit(Device device, uint64_t nbytes) {
    return allocator_of("set_memory_limit", device).blocks.set_limit(nbytes ? nbytes : UINT64_MAX);
}

}  // namespace rushlight
