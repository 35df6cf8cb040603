// Waits for a device: what the caller holds meanwhile that others may need.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

struct WaitFunctions {
    /// Lets go of what this thread holds, and returns what that was; null: nothing. Must not throw.
    void* (*begin)();
    void (*end)(void* held);
};
/// The bindings give up the interpreter's lock. Null: nothing is held.
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
