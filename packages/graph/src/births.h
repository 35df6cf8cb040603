// Ownership of tensors' memory, for captures.
#pragma once

#include <cstdint>
#include <optional>

#include "rushlight/export.h"
#include "rushlight/storage.h"

namespace rushlight::graph {

// Note [Births]
// A tensor that is not the result of a recorded call comes from outside of the region, from Python's data inside it, from
// the inside of an operator, or from another thread. In the first two cases it is a constant; in the others a constant would
// freeze its value. So while captures run, core reports each allocated block of memory, and the table records its owner.
struct Birth {
    uint64_t capture;  // number of the thread's; 0: a thread without one
    bool inside;       // an operator
    uint32_t block;    // of control flow, which was recorded: 0 is the graph
};

/// The capture of the running thread.
struct Capturing {
    uint64_t number = 0;
    int depth = 0;  // 1 inside a recorded call
    uint32_t block = 0;  // that is recorded
};
extern thread_local Capturing capturing RL_TLS_MODEL;

/// Counts the captures that use the table.
void watch_births(bool on);
/// Returns nothing for memory from before the capture.
std::optional<Birth> birth_of(const Storage* storage);

// The functions that core calls, for TracerFunctions.
void note_birth(const void* data);
void forget_birth(const void* data);

}  // namespace rushlight::graph
