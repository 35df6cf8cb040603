// Ownership of tensors' memory, for captures.
#pragma once

#include <cstdint>
#include <optional>

#include "rushlight/export.h"
#include "rushlight/storage.h"

namespace rushlight::graph {

// Note [Births]
// A tensor that no recorded call has given is from outside of the region, from Python's data inside it, or an operator made it
// for itself, or another thread did. The first two are constants; to take the others for constants would freeze their
// values. So while captures run, core reports each block of memory, and the table records its owner.
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
/// Nothing for memory from before.
std::optional<Birth> birth_of(const Storage* storage);

// What core calls: TracerFunctions.
void note_birth(const void* data);
void forget_birth(const void* data);

}  // namespace rushlight::graph
