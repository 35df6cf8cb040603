// Ctrl-C in the middle of long work. Python runs signal handlers between its own instructions only; core checks between
// blocks and nodes, and here the handlers are run for it.
#include <ctime>

#include "python/python.h"
#include "rushlight/interrupt.h"

namespace rushlight::python {
namespace {

// Checking takes the GIL: at intervals that a person does not notice.
constexpr int64_t kPause = 20'000'000;  // nanoseconds

// The error that the handler raised, while it passes through C++ to the binding.
thread_local PyObject* raised[3];

bool interrupted_by_python() {
    thread_local int64_t next = 0;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const int64_t time = now.tv_sec * 1'000'000'000 + now.tv_nsec;
    if (time < next) return false;
    next = time + kPause;
    if (!Py_IsInitialized() || !PyGILState_GetThisThreadState())
        return false;  // handlers run on Python's main thread
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
