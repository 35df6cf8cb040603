// Grad mode, threads: the switches of the running thread and of the process.
#include "python/arguments.h"
#include "rushlight/dispatch.h"
#include "rushlight/parallel.h"

namespace rushlight::python {
namespace {

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(dispatch_state.grad_mode); }
PyObject* set_grad_enabled(PyObject*, PyObject* on) {
    int value = PyObject_IsTrue(on);
    if (value < 0) return nullptr;
    set_grad_mode(value);
    Py_RETURN_NONE;
}
PyObject* is_inference_mode_enabled(PyObject*, PyObject*) { return PyBool_FromLong(dispatch_state.inference); }
PyObject* set_inference(PyObject*, PyObject* on) {
    int value = PyObject_IsTrue(on);
    if (value < 0) return nullptr;
    dispatch_state.inference = value;
    Py_RETURN_NONE;
}
PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* set_num_threads_py(PyObject*, PyObject* n) {
    RL_PY_TRY
    int64_t value;
    RL_CHECK(PyLong_Check(n) && to_int(n, value), throw_type, "set_num_threads(n): must be an int, not %s",
             Py_TYPE(n)->tp_name);
    RL_CHECK(value > 0 && value < 1 << 16, throw_runtime, "set_num_threads(n): must be positive, got %lld",
             (long long)value);
    set_num_threads(static_cast<int>(value));
    Py_RETURN_NONE;
    RL_PY_CATCH
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether operators are recorded for gradients."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS, nullptr},
    {"_set_inference", set_inference, METH_O, nullptr},
    {"get_num_threads", get_num_threads, METH_NOARGS, "How many threads an operator may use."},
    {"set_num_threads", set_num_threads_py, METH_O, "Sets how many threads an operator may use."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_modes(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
