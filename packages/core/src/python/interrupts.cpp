// Interruption of long computations by Ctrl-C. Python runs signal handlers only between bytecode instructions. Core
// therefore checks for interrupts between blocks and between nodes, and the handlers are run here.
#include <ctime>

#include "python/python.h"
#include "rushlight/interrupt.h"

namespace rushlight::python {
namespace {

// A check acquires the GIL, which takes time, so it is made at intervals. The intervals are too short for a person to
// notice.
constexpr int64_t kPause = 20'000'000;  // nanoseconds

// The error that a signal handler raised, stored while a C++ exception carries the interruption to the binding.
thread_local PyObject* raised[3];

bool interrupted_by_python() {
    thread_local int64_t next = 0;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const int64_t time = now.tv_sec * 1'000'000'000 + now.tv_nsec;
    if (time < next) return false;
    next = time + kPause;
    if (!Py_IsInitialized() || !PyGILState_GetThisThreadState())
        return false;  // signal handlers run on Python's main thread
    WithGil gil;
    const bool stop = !PyErr_Occurred() && PyErr_CheckSignals() != 0;
    if (stop) PyErr_Fetch(&raised[0], &raised[1], &raised[2]);
    return stop;
}

}  // namespace

bool restore_interrupt() {
    if (!raised[0]) return false;
    PyErr_Restore(raised[0], raised[1], raised[2]);
    raised[0] = raised[1] = raised[2] = nullptr;
    return true;
}

int add_interrupts(PyObject*) {
    set_interrupt_hook(interrupted_by_python);
    return 0;
}

}  // namespace rushlight::python
