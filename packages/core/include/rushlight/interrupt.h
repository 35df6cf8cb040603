// Interruption of long computations. The code that handles the process's signals decides whether to stop.
#pragma once

#include <atomic>

#include "rushlight/export.h"

namespace rushlight {

/// Returns whether the user has interrupted the running work. It is called often, on any thread, while no lock is held.
/// It must be cheap and must not throw.
using InterruptHook = bool (*)();

/// Installs the hook (nullptr: none) and returns the former hook.
RL_API InterruptHook set_interrupt_hook(InterruptHook hook);

namespace detail {
extern RL_API std::atomic<InterruptHook> interrupt_hook;
[[noreturn, gnu::cold]] RL_API void throw_interrupted();
}  // namespace detail

inline bool interrupted() {
    InterruptHook hook = detail::interrupt_hook.load(std::memory_order_relaxed);
    return __builtin_expect(hook != nullptr, 0) && hook();
}

/// Raises Interrupted if the hook returns true. Long kernels call it between blocks, and autograd's engine calls it
/// between nodes.
inline void check_interrupted() {
    if (__builtin_expect(interrupted(), 0)) detail::throw_interrupted();
}

}  // namespace rushlight
