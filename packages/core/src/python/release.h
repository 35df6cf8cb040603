// Release of Python objects from any thread.
#pragma once

#include "python/python.h"

namespace rushlight::python {

// Note [Releases without the GIL]
// A storage is destroyed on whichever thread drops the last reference. Releasing memory that belongs to a Python object
// needs the GIL. Taking the GIL there could deadlock (the thread may hold a lock that the GIL's holder waits for) and
// is impossible once the interpreter is going down. So such releases wait in a queue, which the main thread empties at
// its next bytecode, or the next call that imports foreign memory. What is still queued at the interpreter's end is
// leaked.

/// Runs `function(context)` with the GIL: immediately if this thread has it, else later.
void run_with_gil(void (*function)(void*), void* context);

/// Runs the queued releases. Needs the GIL.
void run_waiting_releases();

}  // namespace rushlight::python
