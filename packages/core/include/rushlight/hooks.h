// The events that a profiler receives besides operators: backward nodes and memory. Operators are reported by a stage
// of dispatch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rushlight/device.h"
#include "rushlight/export.h"

namespace rushlight {

// Note [Hooks]
// Without an observer, a report costs one load of a null pointer and one branch. Arguments of a report are computed
// only after the branch. The functions run on the thread that reports, while we hold no lock. They must not throw and
// must not call operators. An Observer and its functions must stay valid until the process ends, because a thread may
// have read the pointer just before it was removed.

/// The functions of an observer. Functions that the observer does not need are null.
struct Observer {
    /// Called when an operator has recorded a node. Sequence numbers increase in the order of recording.
    void (*node_made)(uint64_t sequence);
    /// Called before and after a backward pass runs the node with this sequence number, on the same thread. Backward
    /// passes may be nested.
    void (*node_begin)(const char* name, uint64_t sequence);
    void (*node_end)(uint64_t sequence);
    /// Called when a storage has received memory from our allocator or a device's allocator, or has returned it. Memory
    /// from other allocators is not reported.
    void (*allocated)(const void* data, size_t nbytes, Device device);
    void (*released)(const void* data, size_t nbytes, Device device);
};

namespace detail {
extern RL_API std::atomic<const Observer*> observer;
}

/// Replaces the observer of the process; null removes it. Returns the former observer.
RL_API const Observer* set_observer(const Observer* observer);
inline const Observer* current_observer() { return detail::observer.load(std::memory_order_acquire); }

/// Reports to the observer when autograd's engine begins to run a node, and when the node is done. `name`, a function
/// that returns the node's name, is called only if there is an observer.
class NodeScope {
  public:
    template <class Name>
    NodeScope(uint64_t sequence, Name&& name) : observer_(current_observer()), sequence_(sequence) {
        if (observer_ && observer_->node_begin) [[unlikely]]
            observer_->node_begin(name().c_str(), sequence);
    }
    ~NodeScope() {
        if (observer_ && observer_->node_end) [[unlikely]]
            observer_->node_end(sequence_);
    }
    NodeScope(const NodeScope&) = delete;

  private:
    const Observer* observer_;
    uint64_t sequence_;
};

/// Reports a new node. Called by the constructor of autograd's nodes.
inline void report_node(uint64_t sequence) {
    if (auto* o = current_observer(); o && o->node_made) [[unlikely]]
        o->node_made(sequence);
}

}  // namespace rushlight
