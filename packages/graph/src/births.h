// Ownership of tensors' memory, for captures.
#pragma once

#include <cstdint>
#include <optional>

#include "rushlight/export.h"
#include "rushlight/storage.h"

namespace rushlight::graph {

// Note [Births]
// A tensor that is not the result of a recorded call has one of four origins: it existed before the region, it was
// made from Python data inside the region, an operator allocated it internally, or another thread made it. In the
// first two cases it becomes a constant. In the last two cases an error is raised instead, because the value of the
// tensor may differ between runs. So while captures run, core reports each allocated block of memory, and the table
// records its origin.
struct Birth {
    uint64_t capture;  // number of the capture on the allocating thread; 0 if there was none
    bool inside;       // whether an operator allocated the memory internally
    uint32_t block;    // the block of control flow that was being recorded; 0 is the graph itself
    uint64_t order;    // 1 for the first birth of the process, 2 for the second, and so on
};

/// The capture of the calling thread.
struct Capturing {
    uint64_t number = 0;
    int depth = 0;  // number of recorded calls that are running: 0 or 1
    uint32_t block = 0;  // the block of control flow that is being recorded
};
extern thread_local Capturing capturing RL_TLS_MODEL;

/// Called with true when a capture begins to use the table, and with false when it ends. The table is filled while any
/// capture uses it.
void watch_births(bool on);
/// Returns the number of births so far.
uint64_t count_births();
/// Returns where memory was allocated, or nothing if it was allocated before the capture. `before` is the number of births
/// before the capture: the table also contains births that were noted for another capture.
std::optional<Birth> birth_of(const Storage* storage, uint64_t before);

// The functions of TracerFunctions that core calls for each allocation and release.
void note_birth(const void* data);
void forget_birth(const void* data);

}  // namespace rushlight::graph
