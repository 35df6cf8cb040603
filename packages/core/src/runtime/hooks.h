// How storages report their memory to the observer: Note [Hooks].
#pragma once

#include "rushlight/hooks.h"

namespace rushlight::detail {

// The bits of the receivers of memory events: the observer (1), the tracer (2). Hidden, so that the test of an
// allocation for it is one instruction with an address in it: an exported variable is reached through a table.
extern __attribute__((visibility("hidden"))) std::atomic<uint8_t> memory_watchers;

inline bool memory_is_observed() {
    return __builtin_expect(memory_watchers.load(std::memory_order_relaxed) != 0, 0);
}

// Out of line, so that the callers, which are on the way of every operator, keep their registers.
[[gnu::cold, gnu::noinline]] void report_allocated(const void* data, size_t nbytes, Device device);
[[gnu::cold, gnu::noinline]] void report_released(const void* data, size_t nbytes, Device device);

}  // namespace rushlight::detail
