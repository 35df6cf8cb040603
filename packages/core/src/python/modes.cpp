// Switches of the running thread and of the process, such as grad mode and the number of threads.
#include "python/arguments.h"
#include "python/docstrings.h"
#include "rushlight/dispatch.h"
#include "rushlight/parallel.h"
#include "rushlight/strict.h"

namespace rushlight::python {
namespace {

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(dispatch_state.grad_mode); }
PyObject* set_grad_enabled(PyObject*, PyObject* on) {
    int value = PyObject_IsTrue(on);
    if (value < 0) return nullptr;
    set_grad_mode(value && !dispatch_state.inference);
    Py_RETURN_NONE;
}
PyObject* is_inference_mode_enabled(PyObject*, PyObject*) {
    return PyBool_FromLong(dispatch_state.inference);
}
PyObject* is_strict_py(PyObject*, PyObject*) { return PyBool_FromLong(is_strict()); }
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

// The base class of no_grad and similar modes. An object saves this thread's modes and restores them. The Python
// subclasses (rushlight_core._grad_mode) use its methods as __enter__ and __exit__.
struct ModeScope {
    PyObject_HEAD bool grad_mode, inference, strict;
};

PyObject* scope_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    Py_ssize_t given = PyTuple_GET_SIZE(args) + (kwargs ? PyDict_GET_SIZE(kwargs) : 0);
    PyObject* function = given == 1 && !kwargs ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (given && !(function && PyCallable_Check(function))) {
        PyErr_Format(PyExc_TypeError, "%s(): takes only one argument, the function that it decorates",
                     type->tp_name);
        return nullptr;
    }
    PyObject* self = type->tp_alloc(type, 0);
    if (!self || !function) return self;
    PyObject* decorated = PyObject_CallOneArg(self, function);  // @no_grad without parentheses
    Py_DECREF(self);
    return decorated;
}
void scope_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
template <bool grad, bool inference>
PyObject* scope_enter(PyObject* self, PyObject*) {
    auto* scope = reinterpret_cast<ModeScope*>(self);
    scope->grad_mode = dispatch_state.grad_mode;
    scope->inference = dispatch_state.inference;
    scope->strict = is_strict();
    if constexpr (inference) dispatch_state.inference = true;
    set_grad_mode(grad && !dispatch_state.inference);
    Py_RETURN_NONE;
}
PyObject* scope_leave_inference(PyObject* self, PyObject*) {
    scope_enter<true, false>(self, nullptr);
    dispatch_state.inference = false;
    set_grad_mode(true);
    Py_RETURN_NONE;
}
template <bool on>
PyObject* scope_strict(PyObject* self, PyObject*) {
    auto* scope = reinterpret_cast<ModeScope*>(self);
    scope->grad_mode = dispatch_state.grad_mode;
    scope->inference = dispatch_state.inference;
    scope->strict = set_strict(on);
    Py_RETURN_NONE;
}
PyObject* scope_restore(PyObject* self, PyObject* const*, Py_ssize_t) {
    auto* scope = reinterpret_cast<ModeScope*>(self);
    set_grad_mode(scope->grad_mode);
    dispatch_state.inference = scope->inference;
    if (scope->strict != is_strict()) set_strict(scope->strict);
    Py_RETURN_NONE;
}

int add_mode_scope(PyObject* module) {
    static PyMethodDef methods[] = {
        {"_turn_off", scope_enter<false, false>, METH_NOARGS, nullptr},
        {"_turn_on", scope_enter<true, false>, METH_NOARGS, nullptr},
        {"_enter_inference", scope_enter<false, true>, METH_NOARGS, nullptr},
        {"_leave_inference", scope_leave_inference, METH_NOARGS, nullptr},
        {"_enter_strict", scope_strict<true>, METH_NOARGS, nullptr},
        {"_leave_strict", scope_strict<false>, METH_NOARGS, nullptr},
        {"_restore", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(scope_restore)),
         METH_FASTCALL, nullptr},
        {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(scope_new)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(scope_dealloc)},
                                  {Py_tp_methods, methods},
                                  {0, nullptr}};
    static PyType_Spec spec{"rushlight_core._C._ModeScope", sizeof(ModeScope), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) return -1;
    int result = PyModule_AddObjectRef(module, "_ModeScope", type);
    Py_DECREF(type);
    return result;
}

PyMethodDef functions[] = {{"is_grad_enabled", is_grad_enabled, METH_NOARGS, docstrings::is_grad_enabled_},
                           {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
                           {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
                            docstrings::is_inference_mode_enabled_},
                           {"is_strict_enabled", is_strict_py, METH_NOARGS, docstrings::is_strict_enabled_},
                           {"get_num_threads", get_num_threads, METH_NOARGS, docstrings::get_num_threads_},
                           {"set_num_threads", set_num_threads_py, METH_O, docstrings::set_num_threads_},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_modes(PyObject* module) {
    return add_mode_scope(module) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::python
