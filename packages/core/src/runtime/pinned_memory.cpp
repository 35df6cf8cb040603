// Pinned host memory: core's caching allocator over pages that a backend pins.
#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "runtime/attached.h"
#include "runtime/caching_allocator.h"
#include "rushlight/streams.h"

namespace rushlight {
namespace {

using namespace detail;

/// The host is stream 0. The streams of all devices are numbered in the order in which they were first used.
struct PinnedDriver final : Driver {
    explicit PinnedDriver(const Backend& b) : backend(b) {}

    void* map(size_t nbytes) noexcept override {
        void* data = nullptr;
        return backend.pin(nbytes, &data) == BackendStatus::Ok ? data : nullptr;
    }
    void unmap(void* data, size_t nbytes) noexcept override { backend.unpin(data, nbytes); }
    uint64_t now_ms() noexcept override { return 0; }
    Driver::Event record(StreamId id) noexcept override {
        auto [device, stream] = streams[id - 1];
        void* event = nullptr;
        if (backend.create_event(device, 0, &event) != BackendStatus::Ok) return nullptr;
        backend.record_event(device, event, stream);
        return new Mark{device, event};
    }
    bool reached(Driver::Event e) noexcept override {
        int32_t there = 1;
        if (auto* mark = static_cast<Mark*>(e)) backend.query_event(mark->device, mark->event, &there);
        return there != 0;
    }
    void wait(Driver::Event e) noexcept override {
        if (auto* mark = static_cast<Mark*>(e)) backend.synchronize_event(mark->device, mark->event);
    }
    void destroy(Driver::Event e) noexcept override {
        auto* mark = static_cast<Mark*>(e);
        if (mark) backend.destroy_event(mark->device, mark->event);
        delete mark;
    }
    StreamId number(int32_t device, void* stream) {
        const std::pair wanted(device, stream);
        auto found = std::find(streams.begin(), streams.end(), wanted);
        if (found == streams.end()) found = streams.insert(found, wanted);
        return static_cast<StreamId>(found - streams.begin()) + 1;
    }

    struct Mark {
        int32_t device;
        void* event;
    };
    const Backend& backend;
    std::deque<std::pair<int32_t, void*>> streams;
};

struct Pinned {
    explicit Pinned(const Attached& a) : attached(a), driver(a.backend) {}

    const Attached& attached;
    std::mutex mutex;  // guards `driver.streams` and `copies`
    PinnedDriver driver;
    std::unordered_map<const void*, std::vector<std::unique_ptr<rushlight::Event>>> copies;
    CachingAllocator blocks{driver, {}};
};

std::mutex pinned_mutex;
Pinned* all_pinned[kNumDeviceTypes];  // never destroyed

Pinned& pinned(DeviceType type) {
    const Attached& owner = require_attached(type);
    require_function(owner.backend, owner.backend.pin, "pinned memory");
    std::lock_guard lock(pinned_mutex);
    Pinned*& slot = all_pinned[static_cast<int>(type)];
    if (!slot) slot = new Pinned(owner);
    return *slot;
}

void release_pinned(void* context, void* data, size_t) {
    auto* from = static_cast<Pinned*>(context);
    if (!data || from->attached.forked) return;
    std::vector<std::unique_ptr<rushlight::Event>> ended;
    std::lock_guard lock(from->mutex);
    if (auto found = from->copies.find(data); found != from->copies.end()) {
        ended = std::move(found->second);
        from->copies.erase(found);
    }
    (void)from->blocks.release(data);
}

Pinned* maker_of(const Storage& storage) {
    return storage.release_function() == release_pinned ? static_cast<Pinned*>(storage.release_context())
                                                        : nullptr;
}

}  // namespace

std::optional<DeviceType> find_pinning_device() {
    for (DeviceType type : {DeviceType::CUDA, DeviceType::Plugin})
        if (device_count(type) > 0 && backend_of(type)->pin) return type;
    return std::nullopt;
}

DeviceType pinning_device() {
    if (auto found = find_pinning_device()) return *found;
    throw_runtime(
        "pin_memory: no device is attached that uses pinned memory for copies\n"
        "hint: call load_backend(path) to attach a device");
}

Ref<Storage> allocate_pinned(size_t nbytes, DeviceType type) {
    Pinned& from = pinned(type);
    void* data = nullptr;
    if (nbytes > 0) {
        std::lock_guard lock(from.mutex);
        data = from.blocks.allocate(nbytes);
    }
    RL_CHECK(data || nbytes == 0, throw_out_of_memory,
             "pin_memory: the backend '%s' could not pin %zu bytes of host memory%s",
             from.driver.backend.name, nbytes, from.blocks.largest_live(5).c_str());
    return Storage::wrap(data, nbytes, Device{}, StorageKind::Pinned, release_pinned, &from);
}

void record_pinned_copy(const Storage& storage, Device device, void* stream) {
    Pinned* from = maker_of(storage);
    if (!from || !storage.data()) return;
    auto event = std::make_unique<rushlight::Event>(device.type);
    event->record(device, stream);
    std::lock_guard lock(from->mutex);
    from->blocks.record_use(storage.data(), from->driver.number(device.index, stream));
    auto& copies = from->copies[storage.data()];
    std::erase_if(copies, [](const auto& earlier) { return earlier->query(); });
    copies.push_back(std::move(event));
}

bool pinned_copy_pending(const Storage& storage) {
    Pinned* from = maker_of(storage);
    if (!from || from->attached.forked) return false;
    std::lock_guard lock(from->mutex);
    auto found = from->copies.find(storage.data());
    if (found == from->copies.end()) return false;
    std::erase_if(found->second, [](const auto& event) { return event->query(); });
    if (!found->second.empty()) return true;
    from->copies.erase(found);
    return false;
}

}  // namespace rushlight
