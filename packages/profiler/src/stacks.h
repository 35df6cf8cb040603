// Records the Python stack of a thread as words of a lane. The rest of the recorder does not depend on Python.
#pragma once

#include "ring.h"

namespace rushlight::profiler {

/// Writes and publishes the calling thread's Python calls, the innermost first, at most 64. Returns their
/// number; 0 on a thread that does not run Python at the moment.
uint16_t write_stack(Ring<uint64_t>& words);
/// Returns "file(line): function" for one of those words as a new Python string, or null with a Python error set.
void* describe_call(uint64_t word);
/// Discards all calls. Words that refer to them become invalid.
void forget_stacks();

}  // namespace rushlight::profiler
