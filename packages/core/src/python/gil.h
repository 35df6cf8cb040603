// Scopes that take the GIL, and the treatment of threads when the interpreter ends.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rushlight::python {

// Note [Interpreter exit]
// At its end the interpreter ends every other thread that requests the GIL, at that point: it is unwound, through
// our C++ too. No handler may stop the unwinding, and no destructor on the way may touch Python, for the thread does not have
// the GIL. So a thread that requests it at that time sleeps until the process is gone, and what unwinds a thread that was
// already asking is let through, up to the first frame that would touch Python: that sleeps too. (PyGILState_Check() is no
// help: once the interpreter has ended it returns true for all threads.) A handler knows such an unwinding by the null
// std::current_exception().
inline void sleep_if_interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
    const bool ends = !Py_IsInitialized() || Py_IsFinalizing();
#else
    const bool ends = !Py_IsInitialized() || _Py_IsFinalizing();
#endif
    // The thread that ends the interpreter is the process's first.
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
