// Graphs: work of a device that is recorded once and replayed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "rushlight/backend.h"
#include "rushlight/random.h"
#include "rushlight/storage.h"

namespace rushlight {

// Note [Graphs]
// Between `begin` and `end`, work that any thread queues on the captured stream is recorded and not run. A stream that
// waits for an event of a captured stream is captured, too. Functions that would wait for the device raise an error
// that contains their name. Memory allocated on captured streams comes from a pool of the graph: Note [Private pools].
// Several graphs may share a pool if they are never replayed at the same time. The graph keeps the other memory that
// the recorded work uses alive, so that a replay never writes to memory that has been reused. Each replay draws new
// random numbers from the default generator, because recorded kernels read the key from memory of the device.

/// A graph of one device. Methods raise RuntimeError if they are called in the wrong order.
class RL_API DeviceGraph final : public RefCounted {
  public:
    static Ref<DeviceGraph> make(Device device);
    static void destroy(DeviceGraph* graph);

    Device device() const { return device_; }
    /// Starts to record `stream`, which must not be the default stream. `pool` is the pool of another graph, or 0 for a
    /// new one.
    void begin(void* stream, uint64_t pool);
    void end();
    /// Ends the capture, if one is under way, and discards the recorded work.
    void abandon() noexcept;
    /// Queues the recorded work on the current stream.
    void replay();
    /// Discards the recorded work and releases the memory that it uses.
    void reset();
    /// The memory pool of the graph. Raises RuntimeError if nothing has been recorded.
    uint64_t pool() const;
    /// The backend's object, which can be replayed. Raises RuntimeError if nothing has been recorded.
    void* handle() const;

  private:
    friend struct Captures;
    explicit DeviceGraph(Device device) : device_(device) {}
    ~DeviceGraph() = default;

    enum class State : uint8_t { Empty, Capturing, Ready };
    void finish_capture();
    void write_key(PhiloxKey key, void* stream);

    Device device_;
    State state_ = State::Empty;
    uint64_t pool_ = 0;
    void* stream_ = nullptr;
    void* graph_ = nullptr;  // an object of the backend
    std::vector<Ref<Storage>> kept_;
    std::vector<void*> replayed_on_;
    Ref<Storage> key_;      // one PhiloxKey in the device's memory
    PhiloxKey at_begin_{};  // the key of the default generator at the beginning of the capture
    uint64_t draws_ = 0;    // the number of streams of random numbers that each replay uses
};

/// Makes a pool that graphs may share.
RL_API uint64_t new_graph_pool();
/// Whether work on `stream` is being recorded.
RL_API bool is_capturing(Device device, void* stream);

namespace detail {

extern RL_API std::atomic<int> captures;  // number of captures under way on all devices

/// Raises RuntimeError if `stream` is captured. `what` is the name of the function that would have to wait for the
/// stream.
RL_API void refuse_in_capture_slow(const char* what, Device device, void* stream);
inline void refuse_in_capture(const char* what, Device device, void* stream) {
    if (captures.load(std::memory_order_relaxed)) [[unlikely]]
        refuse_in_capture_slow(what, device, stream);
}
/// Raises RuntimeError if any stream of the device is captured.
void refuse_in_capture(const char* what, Device device);

/// Keeps the memory of `storage` alive for as long as the graph that records `stream` exists.
void keep_in_capture(const Storage& storage, Device device, void* stream);
/// If the stream of `call` is captured, makes the kernel read its random key from the device's memory when it is
/// replayed.
void move_key_to_device(const char* op, Device device, DeviceCall& call, PhiloxKey& key);
/// Returns the number of the capture that records `stream`, or 0 if the stream is not captured.
uint64_t capture_of(Device device, void* stream);
/// Adds `stream`, which waits for an event of capture `id`, to that capture if the capture is still under way.
void join_capture(uint64_t id, Device device, void* stream);

}  // namespace detail

}  // namespace rushlight
