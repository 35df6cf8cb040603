// Functions by which storages report memory to the observer: Note [Hooks].
#pragma once

#include "rushlight/hooks.h"

namespace rushlight::detail {

// A bit for each receiver of memory events: the observer (1) and the tracer (2). The variable is hidden, so that each
// allocation tests it with one instruction that contains its address. An exported variable would be accessed through a
// table.
extern __attribute__((visibility("hidden"))) std::atomic<uint8_t> memory_watchers;

inline bool memory_is_observed() {
    return __builtin_expect(memory_watchers.load(std::memory_order_relaxed) != 0, 0);
}

// Not inlined, so that the callers, which run in every operator, need fewer registers.
[[gnu::cold, gnu::noinline]] void report_allocated(const void* data, size_t nbytes, Device device);
[[gnu::cold, gnu::noinline]] void report_released(const void* data, size_t nbytes, Device device);

}  // namespace rushlight::detail
