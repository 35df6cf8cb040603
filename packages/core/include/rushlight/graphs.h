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
// Between `begin` and `end` the work that any thread queues on the captured stream is recorded and not run. A stream that
// waits for an event of a captured one is captured too. What would wait for the device raises, naming itself. Memory that is
// allocated on captured streams comes from a pool of the graph's own, which several graphs may share that are never replayed
// at the same time: Note [Private pools]. Memory that was there before, and that recorded work uses, is kept alive by the
// graph, so a replay never writes to memory in other use. Each replay draws new random numbers from the default generator:
// recorded kernels read the key from memory of the device.

/// A graph of one device. Methods raise RuntimeError out of their order.
class RL_API DeviceGraph final : public RefCounted {
  public:
    static Ref<DeviceGraph> make(Device device);
    static void destroy(DeviceGraph* graph);

    Device device() const { return device_; }
    /// Starts to record `stream`, which is not the default one. `pool` is that of another graph, or 0.
    void begin(void* stream, uint64_t pool);
    void end();
    /// Ends the capture, if one is under way, and keeps nothing.
    void abandon() noexcept;
    /// Queues the recorded work on the current stream.
    void replay();
    /// Forgets the recorded work, and the memory that it needs.
    void reset();
    /// The pool of its memory; RuntimeError where nothing has been recorded.
    uint64_t pool() const;

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
    void* graph_ = nullptr;  // the backend's
    std::vector<Ref<Storage>> kept_;
    std::vector<void*> replayed_on_;
    Ref<Storage> key_;      // of the device: one PhiloxKey
    PhiloxKey at_begin_{};  // of the default generator
    uint64_t draws_ = 0;
};

/// A pool that graphs may share.
RL_API uint64_t new_graph_pool();
/// Whether work on that stream is recorded.
RL_API bool is_capturing(Device device, void* stream);

namespace detail {

extern RL_API std::atomic<int> captures;  // under way, of any device

/// RuntimeError where `stream` is captured: `what` waits for it.
RL_API void refuse_in_capture_slow(const char* what, Device device, void* stream);
inline void refuse_in_capture(const char* what, Device device, void* stream) {
    if (captures.load(std::memory_order_relaxed)) [[unlikely]]
        refuse_in_capture_slow(what, device, stream);
}
/// The same where any stream of the device is.
void refuse_in_capture(const char* what, Device device);

/// The graph that records `stream` keeps that memory.
void keep_in_capture(const Storage& storage, Device device, void* stream);
/// Lets a recorded kernel read its random key from the device's memory.
void move_key_to_device(const char* op, Device device, DeviceCall& call, PhiloxKey& key);
/// The number of the capture of `stream`, 0 without one.
uint64_t capture_of(Device device, void* stream);
/// A stream that waits for an event of a capture, if that is still under way, is captured too.
void join_capture(uint64_t id, Device device, void* stream);

}  // namespace detail

}  // namespace rushlight
