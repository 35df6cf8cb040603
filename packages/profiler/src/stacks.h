// Where in the Python program a thread is, as words of a lane. The rest of the recorder does not depend on Python.
#pragma once

#include "ring.h"

namespace rushlight::profiler {

/// Writes and publishes the calling thread's Python calls, the innermost first, at most 64. Returns their
/// number; 0 on a thread that does not run Python at the moment.
uint16_t write_stack(Ring<uint64_t>& words);
/// "file(line): function" of one of those words: a new Python string, null with an error set.
void* describe_call(uint64_t word);
/// Forgets all calls; the words that name them become meaningless.
void forget_stacks();

}  // namespace rushlight::profiler
