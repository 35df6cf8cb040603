// Pinned host memory: core's caching allocator over pages that a backend pins.
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/attached.h"
#include "runtime/caching_allocator.h"
#include "rushlight/streams.h"

namespace rushlight {
namespace {

using namespace detail;

struct PinnedDriver final : Driver {
    explicit PinnedDriver(const Backend& b) : backend(b) {}

    void* map(size_t nbytes) noexcept override {
        void* data = nullptr;
        status = backend.pin(nbytes, &data);
        return status == BackendStatus::Ok ? data : nullptr;
    }
    void unmap(void* data, size_t nbytes) noexcept override { backend.unpin(data, nbytes); }
    uint64_t now_ms() noexcept override { return 0; }

    const Backend& backend;
    BackendStatus status = BackendStatus::Ok;  // the status of the last call of `pin`
};

/// The events that are recorded after the copies that read or write a block. An event is removed when it is reached.
using Copies = std::vector<std::unique_ptr<rushlight::Event>>;

/// Returns whether all copies are done.
bool are_done(Copies& copies) {
    std::erase_if(copies, [](const auto& event) {
        try {
            return event->query();
        } catch (const Error&) { return true; }  // a device that has failed executes nothing more
    });
    return copies.empty();
}

/// A block that was released during a copy is held back until the copy is done. The event that marks the end of the
/// copy is recorded directly after the copy and not when the block is released, because the stream may be captured at
/// that time.
struct Pinned {
    explicit Pinned(const Attached& a) : attached(a), driver(a.backend) {}

    void release(void* data, Copies left) {
        if (are_done(left)) (void)blocks.release(data);
        else held_back.emplace_back(data, std::move(left));
    }
    void release_done() {
        for (auto& [data, left] : std::exchange(held_back, {})) release(data, std::move(left));
    }

    const Attached& attached;
    std::mutex mutex;  // guards the members below
    PinnedDriver driver;
    std::unordered_map<const void*, Copies> copies;
    std::vector<std::pair<void*, Copies>> held_back;
    CachingAllocator blocks{driver, {}};
};

struct PinnedLock {
    explicit PinnedLock(Pinned& of) : lock(of.mutex) {}
    std::lock_guard<std::mutex> lock;
    UnderAllocatorLock scope;
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
    const PinnedLock lock(*from);
    auto copies = from->copies.extract(data);
    from->release(data, copies ? std::move(copies.mapped()) : Copies());
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
    BackendStatus status = BackendStatus::Ok;
    if (nbytes > 0) {
        const PinnedLock lock(from);
        from.release_done();
        from.driver.status = BackendStatus::Ok;
        data = from.blocks.allocate(nbytes);
        if (!data && !from.held_back.empty()) {
            for (auto& [held, copies] : from.held_back)
                for (const auto& event : copies) event->synchronize();
            from.release_done();
            data = from.blocks.allocate(nbytes);
        }
        status = from.driver.status;
    }
    if (!data && status != BackendStatus::OutOfMemory)
        check_backend(status, from.driver.backend, "pinning memory");
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
    const PinnedLock lock(*from);
    Copies& copies = from->copies[storage.data()];
    are_done(copies);
    copies.push_back(std::move(event));
}

bool pinned_copy_pending(const Storage& storage) {
    Pinned* from = maker_of(storage);
    if (!from || from->attached.forked) return false;
    const PinnedLock lock(*from);
    auto found = from->copies.find(storage.data());
    if (found == from->copies.end()) return false;
    if (!are_done(found->second)) return true;
    from->copies.erase(found);
    return false;
}

}  // namespace rushlight
