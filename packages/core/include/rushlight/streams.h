// Streams of devices, and events that order and time them.
#pragma once

#include <optional>

#include "rushlight/backend.h"
#include "rushlight/storage.h"
#include "rushlight/tensor.h"

namespace rushlight {

/// Whether the backend of a device has events, and streams besides the default one.
RL_API bool has_streams(Device device);
/// Returns a stream other than the default one. They are taken in turn from a pool and are never destroyed.
RL_API void* new_stream(Device device, int priority);
/// ValueError if `stream` belongs to another device.
RL_API void check_stream(const char* what, Device device, void* stream);
RL_API void synchronize_stream(Device device, void* stream);
/// Whether all work that is queued on it is done.
RL_API bool query_stream(Device device, void* stream);
/// Makes work queued on `second` from now on start after the work queued so far on `first`.
RL_API void order_streams(Device before, void* first, Device after, void* second);

/// A mark on a stream of one device. Methods raise the errors that the device reports.
class RL_API Event {
  public:
    Event(Device device, bool timing);
    ~Event();
    Event(const Event&) = delete;

    Device device() const { return device_; }
    void record(void* stream);
    void wait(Device device, void* stream) const;
    bool query() const;
    void synchronize() const;
    double elapsed_ms(const Event& end) const;

  private:
    void check_not_captured(const char* what) const;

    Device device_;
    bool timing_, recorded_ = false;
    uint64_t capture_ = 0;  // the one that it was recorded in
    const Backend* backend_ = nullptr;
    void* event_ = nullptr;
};

/// Host memory that a device's copies may use while the host goes on; `type` is the type of these devices. NotImplementedError where the
/// backend has none.
RL_API Ref<Storage> allocate_pinned(size_t nbytes, DeviceType type);
/// The device type that pins memory here, CUDA before others.
RL_API std::optional<DeviceType> find_pinning_device();
/// The device type that pins memory. Raises RuntimeError if there is none.
RL_API DeviceType pinning_device();
/// A new row-major tensor in pinned memory, of the shape and dtype of one on the CPU: RuntimeError for any other.
RL_API Tensor make_pinned(const Tensor& like, DeviceType type);
/// Records that a copy on `stream` reads or writes this pinned memory, which is neither reused nor written by operators
/// before the copy is done.
RL_API void record_pinned_copy(const Storage& storage, Device device, void* stream);
/// Whether a copy of this pinned memory is under way.
RL_API bool pinned_copy_pending(const Storage& storage);

}  // namespace rushlight
