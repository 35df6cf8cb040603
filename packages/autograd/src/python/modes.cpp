// saved_tensors_hooks and anomaly mode.
#include "python.h"
#include "rushlight/autograd/anomaly.h"
#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/saved_hook.h"

namespace rushlight::autograd::python {
namespace {

class PythonPacked final : public Packed {
  public:
    PythonPacked(PyObject* value, PyObject* unpack) : value_(value), unpack_(Py_NewRef(unpack)) {}
    ~PythonPacked() override {
        if (!Py_IsInitialized()) return;
        WithGil gil;
        Py_DECREF(value_);
        Py_DECREF(unpack_);
    }
    Tensor unpack() override {
        WithGil gil;
        Object result(check(PyObject_CallOneArg(unpack_, value_)));
        return require_tensor(result.get(), "saved_tensors_hooks", "result of unpack_hook");
    }

  private:
    PyObject* value_;
    PyObject* unpack_;
};

class PythonSavedHook final : public SavedHook {
  public:
    PythonSavedHook(PyObject* pack, PyObject* unpack, SavedHook* outer)
        : outer(outer), pack_(Py_NewRef(pack)), unpack_(Py_NewRef(unpack)) {}
    ~PythonSavedHook() override {
        Py_DECREF(pack_);
        Py_DECREF(unpack_);
    }
    std::unique_ptr<Packed> pack(const Tensor& t) override {
        WithGil gil;
        try {
            Object argument(check(wrap(t)));
            return std::make_unique<PythonPacked>(check(PyObject_CallOneArg(pack_, argument.get())), unpack_);
        } catch (PythonFailure& failure) {
            failure.restore();
            throw ErrorIsSet();  // core's bindings catch this exception and do not translate PythonFailure
        }
    }
    SavedHook* const outer;

  private:
    PyObject* pack_;
    PyObject* unpack_;
};

// The message of the error that saved_tensors_hooks raises when it is entered on this thread; empty if entering it is
// allowed.
thread_local std::string hooks_disabled;

// _disable_saved_hooks(message or None) -> the former message or None
PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
    RL_TRY
    Object before(hooks_disabled.empty() ? Py_NewRef(Py_None)
                                         : check(PyUnicode_FromString(hooks_disabled.c_str())));
    std::string text;
    if (message != Py_None) {
        const char* given = PyUnicode_Check(message) ? PyUnicode_AsUTF8(message) : nullptr;
        RL_CHECK(given && *given, throw_type,
                 "disable_saved_tensors_hooks(error_message): must be a non-empty string");
        RL_CHECK(!saved_hook(), throw_runtime, "%s", given);
        text = given;
    }
    hooks_disabled = text;
    return before.release();
    RL_CATCH
}

PyObject* push_saved_hooks(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(hooks_disabled.empty(), throw_runtime, "%s", hooks_disabled.c_str());
    RL_CHECK(nargs == 2 && PyCallable_Check(args[0]) && PyCallable_Check(args[1]), throw_type,
             "saved_tensors_hooks(pack_hook, unpack_hook): both must be callable");
    set_saved_hook(new PythonSavedHook(args[0], args[1], saved_hook()));
    Py_RETURN_NONE;
    RL_CATCH
}

PyObject* pop_saved_hooks(PyObject*, PyObject*) {
    RL_TRY
    auto* innermost = dynamic_cast<PythonSavedHook*>(saved_hook());
    RL_CHECK(innermost, throw_runtime, "saved_tensors_hooks: must be exited on the thread that entered it");
    set_saved_hook(innermost->outer);
    delete innermost;
    Py_RETURN_NONE;
    RL_CATCH
}

PyObject* set_anomaly_mode(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 2, throw_type, "_set_anomaly takes 2 arguments");
    set_anomaly(PyObject_IsTrue(args[0]) == 1, PyObject_IsTrue(args[1]) == 1);
    Py_RETURN_NONE;
    RL_CATCH
}

PyObject* get_anomaly_mode(PyObject*, PyObject*) {
    return Py_BuildValue("(NN)", PyBool_FromLong(anomaly_is_on()),
                         PyBool_FromLong(detail::anomaly.load() & 2));
}

// _set_parallel_branches(on) -> the former setting of this thread
PyObject* set_branches(PyObject*, PyObject* on) {
    return PyBool_FromLong(std::exchange(detail::parallel_branches, PyObject_IsTrue(on) == 1));
}
PyObject* get_branches(PyObject*, PyObject*) { return PyBool_FromLong(parallel_branches()); }

// _set_device_threads(on) -> the former setting of the process
PyObject* set_threads(PyObject*, PyObject* on) {
    bool before = device_threads();
    set_device_threads(PyObject_IsTrue(on) == 1);
    return PyBool_FromLong(before);
}

// Threads that help a pass have a Python thread state until they end.
void* begin_thread() {
    auto* state = new PyGILState_STATE;
    sleep_if_interpreter_ends();
    *state = PyGILState_Ensure();
    PyEval_SaveThread();
    return state;
}
void end_thread(void* state) {
    sleep_if_interpreter_ends();
    PyEval_RestoreThread(PyGILState_GetThisThreadState());
    PyGILState_Release(*static_cast<PyGILState_STATE*>(state));
    delete static_cast<PyGILState_STATE*>(state);
}
std::exception_ptr carry_exception(std::exception_ptr failure) {
    try {
        std::rethrow_exception(failure);
    } catch (ErrorIsSet&) {
        WithGil gil;
        return std::make_exception_ptr(PythonFailure());
    } catch (...) { return failure; }
}
constexpr ThreadFunctions thread_functions{begin_thread, end_thread, carry_exception};

// queue_callback(callback)
PyObject* queue_callback_py(PyObject*, PyObject* callable) {
    RL_TRY
    RL_CHECK(PyCallable_Check(callable), throw_type, "queue_callback(callback): must be callable, not %s",
             Py_TYPE(callable)->tp_name);
    std::shared_ptr<PyObject> held(Py_NewRef(callable), [](PyObject* o) {
        if (!Py_IsInitialized()) return;
        WithGil gil;
        Py_DECREF(o);
    });
    queue_callback([held] {
        WithGil gil;
        Object result(check(PyObject_CallNoArgs(held.get())));
    });
    Py_RETURN_NONE;
    RL_CATCH
}

PyMethodDef functions[] = {
    {"_queue_callback", queue_callback_py, METH_O, nullptr},
    {"_push_saved_hooks", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(push_saved_hooks)),
     METH_FASTCALL, nullptr},
    {"_pop_saved_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
    {"_disable_saved_hooks", disable_saved_hooks, METH_O, nullptr},
    {"_set_parallel_branches", set_branches, METH_O, nullptr},
    {"_get_parallel_branches", get_branches, METH_NOARGS, nullptr},
    {"_set_device_threads", set_threads, METH_O, nullptr},
    {"_set_anomaly", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_anomaly_mode)),
     METH_FASTCALL, nullptr},
    {"_get_anomaly", get_anomaly_mode, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_modes(PyObject* module) {
    set_thread_functions(&thread_functions);
    return PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::autograd::python
