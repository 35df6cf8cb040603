// Release of references to Python objects on any thread.
#pragma once

#include "python/python.h"

namespace rushlight::python {

// Note [Releases without the GIL]
// A storage is destroyed on the thread that drops the last reference. If its memory belongs to a Python object, the
// release needs the GIL. Acquiring the GIL at that point could deadlock, because the thread may hold a lock that the
// GIL's holder waits for, and it is impossible once the interpreter is ending. So such releases are added to a queue.
// The main thread runs the queued releases at its next bytecode, or the next call that imports foreign memory runs
// them. Releases that are still queued when the interpreter ends are leaked.

/// Calls `function(context)` with the GIL: immediately if this thread holds it, otherwise later.
void run_with_gil(void (*function)(void*), void* context);

/// Runs the queued releases. Needs the GIL.
void run_waiting_releases();

}  // namespace rushlight::python
