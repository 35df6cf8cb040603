// Tensor subclasses that want to see operators: __torch_function__.
#pragma once

#include "python/python.h"

namespace rushlight::python {

// Note [__torch_function__]
// A subclass of Tensor may define `__torch_function__(cls, func, types, args, kwargs)`. Its tensors carry the stage Python,
// the highest, whose boxed fallback calls the method instead of the operator. A subclass that defines none keeps its type:
// results of operators on its tensors are of that class (the inherited method sees to it). One that sets
// `__torch_function__ = _C._disabled_torch_function_impl`, as Parameter does, carries no stage and costs nothing; its
// results are plain tensors.
//
// An override may return anything. What does not fit the operator's result types leaves C++ as the exception Overridden
// and arrives in Python as the result of the call.

/// The result of a call that an override has answered; owns a reference.
struct Overridden {
    PyObject* result;
};

/// Whether tensors of this class carry the stage Python. Installs the stage's fallback at the first one.
bool overrides_operators(PyTypeObject* type);

/// Answers Tensor.<method>(*args) by the override of an argument's class; null, without an error, where there is none.
PyObject* call_override(const char* method, PyObject* const* args, Py_ssize_t count);

/// For a call that no signature fits: an argument that is no Tensor may answer it by a __torch_function__ of its own;
/// its answer is thrown as Overridden. `self` is null for functions.
void answer_by_other_class(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames);

/// The tensor as an object of `type`, over the same memory.
PyObject* as_subclass(PyObject* tensor, PyTypeObject* type);

int add_override(PyObject* module);

}  // namespace rushlight::python
