// Scopes that acquire or release the GIL, and the treatment of threads when the interpreter ends.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rushlight::python {

// Note [Interpreter exit]
// When the interpreter ends, it terminates every other thread at the point where the thread requests the GIL: it
// unwinds the thread's stack, including frames of our C++ code. No handler may stop the unwinding, and no destructor in
// these frames may use Python, because the thread does not hold the GIL. Therefore a thread that requests the GIL at
// that time sleeps until the process has ended. If a thread was already waiting for the GIL, its unwinding is allowed
// to proceed up to the first frame that would use Python, and the thread then sleeps. (PyGILState_Check() does not
// help: after the interpreter has ended it returns true for all threads.) A handler recognises such an unwinding by
// std::current_exception(), which is null.
inline void sleep_if_interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
    const bool ends = !Py_IsInitialized() || Py_IsFinalizing();
#else
    const bool ends = !Py_IsInitialized() || _Py_IsFinalizing();
#endif
    // The interpreter is ended by the first thread of the process.
    if (ends && syscall(SYS_gettid) != getpid()) [[unlikely]]
        for (;;) pause();
}

class WithGil {
  public:
    WithGil() : state_((sleep_if_interpreter_ends(), PyGILState_Ensure())) {}
    ~WithGil() {
        sleep_if_interpreter_ends();
        PyGILState_Release(state_);
    }
    WithGil(const WithGil&) = delete;

  private:
    PyGILState_STATE state_;
};

class WithoutGil {
  public:
    WithoutGil() : state_(PyEval_SaveThread()) {}
    ~WithoutGil() noexcept(false) {
        sleep_if_interpreter_ends();
        PyEval_RestoreThread(state_);
    }
    WithoutGil(const WithoutGil&) = delete;

  private:
    PyThreadState* state_;
};

}  // namespace rushlight::python
