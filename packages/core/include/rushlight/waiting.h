// Waiting for a device: locks that the caller releases during the wait.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

struct WaitFunctions {
    /// Releases the locks that this thread holds, and returns them for `end`; null if there are none. Must not throw.
    void* (*begin)();
    void (*end)(void* held);
};
/// The bindings release the interpreter's lock. Null: threads hold no lock.
RL_API void set_wait_functions(const WaitFunctions* functions);

/// A scope in which this thread only waits.
class RL_API Waiting {
  public:
    Waiting();
    ~Waiting();
    Waiting(const Waiting&) = delete;

  private:
    const WaitFunctions* functions_;
    void* held_;
};

}  // namespace rushlight
