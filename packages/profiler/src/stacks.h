// Records the Python stack of a thread as 64-bit words in a lane. No other part of the recorder depends on Python.
#pragma once

#include "ring.h"

namespace rushlight::profiler {

/// Writes and publishes the Python calls of the calling thread, the innermost first, at most 64. Returns the number
/// of calls; 0 if the thread does not run Python at the moment.
uint16_t write_stack(Ring<uint64_t>& words);
/// Returns a new Python string "file(line): function" for a word that write_stack wrote, or null with a Python error
/// set.
void* describe_call(uint64_t word);
/// Discards the calls of all stacks. Words that refer to them become invalid.
void forget_stacks();

}  // namespace rushlight::profiler
