// Conditions under which operators and waits release the GIL: Note [Locks of the caller].
#include <ctime>

#include "python/python.h"
#include "rushlight/caller_locks.h"

namespace rushlight::python {
namespace {

int64_t nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Note [Fair shares of the GIL]
// A thread that executes bytecode releases the GIL only every 5 ms. If a thread releases the GIL during a kernel of 20
// microseconds, it may have to wait 5 ms to get the GIL back. A program with many such kernels would almost stop while
// another thread executes bytecode. So after a thread has waited for the GIL, its kernels do not release the GIL for as
// long as it waited. If another thread always needs the GIL, each of the two gets half of the time. If other threads
// compute in kernels or wait for files, a thread rarely waits.
thread_local int64_t keeps_until = 0;

// Whether the interpreter has no other thread. Reads only the first and the last element of the interpreter's list of
// threads, since other threads may change the list.
bool is_only_thread() {
    PyThreadState* mine = PyThreadState_Get();
    return PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(mine)) == mine &&
           PyThreadState_Next(mine) == nullptr;
}

void* release(bool waits) {
    if (!Py_IsInitialized() || !PyGILState_Check()) return nullptr;
    if (!waits && (is_only_thread() || nanoseconds() < keeps_until)) return nullptr;
    return PyEval_SaveThread();
}

void acquire(void* state) {
    sleep_if_interpreter_ends();
    const int64_t begin = nanoseconds();
    PyEval_RestoreThread(static_cast<PyThreadState*>(state));
    const int64_t end = nanoseconds();
    keeps_until = end + (end - begin);
}

constexpr CallerLocks the_gil{release, acquire};

}  // namespace

int add_caller_locks(PyObject*) {
    set_caller_locks(&the_gil);
    return 0;
}

}  // namespace rushlight::python
