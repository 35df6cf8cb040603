// The data that core stores about an attached backend; shared by the files that call its functions.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "rushlight/backend.h"
#include "rushlight/error.h"

namespace rushlight {

namespace detail {

inline constexpr int kMaxDevices = 128;  // devices of one type; a device's index is stored in one byte

struct Attached;

/// The number of allocators for which a thread can keep lists of small blocks: Note [Quick blocks].
inline constexpr int kQuickPositions = 8;

/// The source of a device's memory: the context of a storage's release function. Never freed.
struct MemorySource {
    const Attached* attached;
    int32_t index;
    void* stream;
    int32_t position = kQuickPositions;  // index in a thread's table of lists; kQuickPositions means no list
};

struct DeviceState {
    DeviceAllocator* allocator = nullptr;  // core's allocator, if the plug-in requested one
    MemorySource default_source = {};
    std::mutex mutex;  // guards `other_sources`
    std::vector<std::unique_ptr<MemorySource>> other_sources;
};

struct Attached {
    Backend backend = {};  // a copy in which fields that the plug-in lacks are null
    const Backend* original = nullptr;
    int32_t count = 0;
    std::atomic<bool> forked{false};  // in a child process: the device belongs to the parent
    std::array<std::unique_ptr<DeviceState>, kMaxDevices> devices = {};
    std::unordered_map<const KernelSlots*, uint64_t> lacks;  // dtypes that a kernel does not support

    Device device(int32_t index) const { return {backend.type, static_cast<int8_t>(index)}; }
};

/// The backend that is being attached by this thread.
extern constinit thread_local Attached* attaching;

/// The backend of every device type; null where none is attached.
extern std::atomic<const Attached*> attached[kNumDeviceTypes];

/// Finds a backend if none is attached, and returns null if none is found or if it does not work, for example because the
/// machine has no driver. A plug-in that has another name than "cuda" is found earlier, when parse_device parses its name.
const Attached* attached_or_null(DeviceType type);
const Attached& require_attached_slow(DeviceType type);
/// Returns the backend of that type. Raises an error if there is none, or in a child of the process that attached it.
inline const Attached& require_attached(DeviceType type) {
    if (const Attached* found = attached[static_cast<int>(type)].load(std::memory_order_acquire)) [[likely]]
        return *found;
    return require_attached_slow(type);
}
/// Returns the backend of a device that is neither a CPU nor a meta device. A device without an index gets the index of
/// the current device. Raises RuntimeError if there is no such device.
inline const Attached& resolve_attached(Device& device) {
    const Attached& owner = require_attached(device.type);
    if (device.index < 0) device.index = static_cast<int8_t>(current_device(device.type));
    RL_CHECK(device.index < owner.count, throw_runtime,
             "device %s: the index is out of range, because this machine has %d such devices",
             name(device).c_str(), owner.count);
    return owner;
}

/// Checks `device` as `resolve` does, and returns its backend. Raises RuntimeError for the CPU and for the meta device. `what`
/// is the name of the function in errors.
const Attached& attached_for(const char* what, Device& device);

/// A scope in which this thread holds the lock of an allocator. In such a scope, `HostTable::describe` does not look up
/// the line of a call. The look-up needs the lock of the interpreter, and the thread that holds this lock may be
/// waiting for the allocator.
class UnderAllocatorLock {
  public:
    UnderAllocatorLock() { ++depth_; }
    ~UnderAllocatorLock() { --depth_; }
    UnderAllocatorLock(const UnderAllocatorLock&) = delete;
    static bool holds() { return depth_ > 0; }

  private:
    static inline constinit thread_local int depth_ = 0;
};

extern const HostTable host_table;
/// The error text that a plug-in's function set on this thread.
extern thread_local std::string backend_error;

/// Returns `function`. Raises NotImplementedError if it is null because the backend lacks this optional function.
template <class F>
F require_function(const Backend& b, F function, const char* what) {
    RL_CHECK(function, throw_not_implemented, "%s: the backend of this device has no %s", b.name, what);
    return function;
}

/// Allocates memory of a device for use on a stream.
BackendStatus allocate_on(const Attached& owner, int32_t index, size_t nbytes, void* stream, void** data);
void release_on(const Attached& owner, int32_t index, void* data, size_t nbytes);

class CachingAllocator;
/// Returns core's allocator of that device. Raises NotImplementedError if the backend has its own allocator.
CachingAllocator& graph_memory(Device device);
/// The pool of graphs to which a storage's memory belongs, or 0.
uint64_t memory_pool_of(const Storage& storage);

/// The functions of the host table that make core's allocators for a plug-in, and that call these allocators.
BackendStatus create_allocator(int32_t index, const AllocatorDriver* driver, DeviceAllocator** made);
BackendStatus allocator_allocate(DeviceAllocator* from, size_t nbytes, void* stream, void** data);
BackendStatus allocator_release(DeviceAllocator* from, void* data);
BackendStatus allocator_record_use(DeviceAllocator* from, void* data, void* stream);

}  // namespace detail
}  // namespace rushlight
