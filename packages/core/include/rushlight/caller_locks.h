// Locks of the caller, such as the interpreter's, that are released while a thread computes or waits for long.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

// Note [Locks of the caller]
// A thread that computes for some 10 microseconds or more, or waits for a device, releases the locks that it holds on
// behalf of its caller: with Python's bindings the GIL, so that other threads run meanwhile. Kernels do this in two places,
// where an operator calls its kernel (Launch) and where a range is large enough for several threads (parallel_for), and
// waits do it themselves. A thread that has a lock of ours must not request the caller's, since the thread that has that one
// could wait for ours: if it calls kernels, it keeps the caller's locks (KeptCallerLocks). In a thread that holds none of
// them, as during a backward pass, nothing happens.

struct CallerLocks {
    /// Releases the locks that this thread holds, and returns them for `acquire`; null if there are none. `waits`: the thread
    /// waits for something that may depend on other threads, so that the locks must be released. Must not throw.
    void* (*release)(bool waits);
    void (*acquire)(void* held);
};
/// Sets the functions of the bindings, and returns the former ones. Null: threads hold no locks.
RL_API const CallerLocks* set_caller_locks(const CallerLocks* functions);

/// A scope in which this thread holds none of the caller's locks.
class RL_API WithoutCallerLocks {
  public:
    enum class While { Waiting, Computing };

    /// With `wanted` false, the scope does nothing.
    explicit WithoutCallerLocks(While what, bool wanted = true) {
        if (wanted) release(what);
    }
    // The bindings may end the thread at this point.
    ~WithoutCallerLocks() noexcept(false) {
        if (held_) acquire();
    }
    WithoutCallerLocks(const WithoutCallerLocks&) = delete;
    WithoutCallerLocks& operator=(const WithoutCallerLocks&) = delete;

  private:
    void release(While what);
    void acquire();

    const CallerLocks* functions_ = nullptr;
    void* held_ = nullptr;
};

/// A scope in which this thread does not release the caller's locks, because it has a lock of ours.
class RL_API KeptCallerLocks {
  public:
    KeptCallerLocks();
    ~KeptCallerLocks();
    KeptCallerLocks(const KeptCallerLocks&) = delete;
    KeptCallerLocks& operator=(const KeptCallerLocks&) = delete;
};

}  // namespace rushlight
