// Release of Python objects from any thread.
#pragma once

#include "python/python.h"

namespace rushlight::python {

// Note [Releases without the GIL]
// Storages die on any thread: where the last reference is dropped. Memory that belongs to a Python object needs the GIL
// to be given back. Taking the GIL there could deadlock (the thread may hold a lock that the GIL's holder waits for) and
// is impossible once the interpreter is going down. So such releases wait in a queue, which the main thread empties at
// its next bytecode, or the next call that imports foreign memory. What is still queued at the interpreter's end is leaked.

/// Runs `function(context)` with the GIL: at once where this thread has it, else soon.
void run_with_gil(void (*function)(void*), void* context);

/// Runs what waits. Needs the GIL.
void run_waiting_releases();

}  // namespace rushlight::python
