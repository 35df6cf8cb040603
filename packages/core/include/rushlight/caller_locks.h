// Locks of the caller, such as the interpreter's lock (GIL), that a thread releases during long computations and waits.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

// Note [Locks of the caller]
// A thread that computes for about 10 microseconds or more, or waits for a device, releases the locks that its caller
// holds. With Python's bindings this is the GIL, so other Python threads can run meanwhile. The locks are released
// where an operator calls a kernel with large operands (call_cpu_kernel), where a range is large enough for several
// threads (parallel_for, parallel_chunks), around factorizations and Fourier transforms, and during waits.
//
// A thread that holds a lock of ours must not request the caller's locks, since a thread that holds the caller's locks
// may wait for ours. If it calls kernels, it therefore keeps the caller's locks (KeptCallerLocks). A thread without
// locks of a caller, such as a thread that runs a backward pass, releases nothing.

struct CallerLocks {
    /// Releases the locks of this thread, and returns the pointer that must be passed to `acquire`. Returns null if it
    /// has not released any lock. If `waits` is true, the locks must be released, because the thread is going to wait
    /// for something that may depend on other threads. Must not throw.
    void* (*release)(bool waits);
    void (*acquire)(void* held);
};
/// Installs the functions of the bindings, and returns the previous functions. Null stands for callers without locks.
RL_API const CallerLocks* set_caller_locks(const CallerLocks* functions);

/// A scope in which this thread holds none of the caller's locks.
class RL_API WithoutCallerLocks {
  public:
    enum class While { Waiting, Computing };

    /// The scope does nothing if `wanted` is false.
    explicit WithoutCallerLocks(While what, bool wanted = true) {
        if (wanted) release(what);
    }
    // If the interpreter is ending, it may unwind the thread here: Note [Interpreter exit].
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

/// A scope in which this thread does not release the caller's locks, because it holds one of this library's locks.
class RL_API KeptCallerLocks {
  public:
    KeptCallerLocks();
    ~KeptCallerLocks();
    KeptCallerLocks(const KeptCallerLocks&) = delete;
    KeptCallerLocks& operator=(const KeptCallerLocks&) = delete;
};

}  // namespace rushlight
