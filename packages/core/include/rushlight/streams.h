// Streams of devices, and events that order and time them.
#pragma once

#include <optional>

#include "rushlight/backend.h"
#include "rushlight/storage.h"
#include "rushlight/tensor.h"

namespace rushlight {

/// Whether the backend of a device supports events, and streams other than the default stream.
RL_API bool has_streams(Device device);
/// Returns a stream other than the default stream. Streams are returned in turn from a pool, and are never destroyed.
RL_API void* new_stream(Device device, int priority);
/// Sets the least and the most urgent priority of streams. A smaller number is more urgent. Raises NotImplementedError if
/// the backend does not provide the function.
RL_API void stream_priorities(Device device, int& least, int& greatest);
/// Raises ValueError if `stream` belongs to another device.
RL_API void check_stream(const char* what, Device device, void* stream);
RL_API void synchronize_stream(Device device, void* stream);
/// Whether all work that is queued on the stream is done.
RL_API bool query_stream(Device device, void* stream);
/// Makes all work that is queued on `second` after this call wait for the work that was queued on `first` before it.
/// `before` is the device of `first`, and `after` is the device of `second`.
RL_API void order_streams(Device before, void* first, Device after, void* second);

/// A position in the sequence of work that is queued on a stream. An event belongs to the device of the first stream on
/// which it is recorded. An event that was not recorded counts as reached. Methods raise the errors that the device
/// reports.
class RL_API Event {
  public:
    /// `flags` are bits such as kTimedEvent.
    explicit Event(DeviceType type, int32_t flags = 0);
    ~Event();
    Event(const Event&) = delete;

    /// Records the event after all work queued so far on a stream of `device`. Raises ValueError if the event was recorded
    /// on another device before.
    void record(Device device, void* stream);
    void wait(Device device, void* stream) const;
    bool query() const;
    void synchronize() const;
    double elapsed_ms(const Event& end) const;
    /// The backend's object, or null before the event is recorded.
    void* handle() const { return event_; }

  private:
    const Backend& backend() const;
    void check_not_captured(const char* what) const;

    Device device_;  // without an index before the event is recorded
    int32_t flags_;
    uint64_t capture_ = 0;   // the number of the capture in which it was recorded, or 0
    void* event_ = nullptr;  // null before the event is recorded
};

/// Allocates host memory that devices of `type` can copy from and to while the host continues. Raises
/// NotImplementedError if the backend cannot pin memory.
RL_API Ref<Storage> allocate_pinned(size_t nbytes, DeviceType type);
/// The device type whose backend pins memory in this process: CUDA if possible, otherwise another backend; nullopt if
/// there is none.
RL_API std::optional<DeviceType> find_pinning_device();
/// The device type whose backend pins memory in this process. Raises RuntimeError if there is none.
RL_API DeviceType pinning_device();
/// Returns a new row-major tensor in pinned memory with the shape and dtype of `like`. Raises RuntimeError unless
/// `like` is on the CPU.
RL_API Tensor make_pinned(const Tensor& like, DeviceType type);
/// Records that a copy on `stream` reads or writes this pinned memory. Until the copy is done, the memory is not reused
/// and operators do not write to it.
RL_API void record_pinned_copy(const Storage& storage, Device device, void* stream);
/// Whether a copy from or to this pinned memory is still under way.
RL_API bool pinned_copy_pending(const Storage& storage);

}  // namespace rushlight
