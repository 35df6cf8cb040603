// Tensor subclasses that override operators: __torch_function__.
#pragma once

#include <algorithm>

#include "python/python.h"
#include "rushlight/dispatch.h"

namespace rushlight::python {

// Note [__torch_function__]
// A subclass of Tensor may define `__torch_function__(cls, func, types, args, kwargs)`. Its tensors carry the stage
// Python, which comes before all stages except Strict. The boxed fallback of this stage calls the method instead of the
// operator. A subclass that does not define the method inherits one that converts the results of operators to the
// subclass. Tensors of a subclass that sets `__torch_function__ = _C._disabled_torch_function_impl`, as Parameter does,
// do not carry the stage and cost nothing; the results of operators on them are plain tensors.
//
// Methods and properties that are not operators (size, numpy, shape, len) can be overridden in the same way:
// Note [Members that classes see].
//
// An override may return anything. A result that does not have the operator's result types is thrown through C++ as the
// exception Overridden, and is returned to Python as the result of the call.

/// The result of a call that an override has handled; owns a reference.
struct Overridden {
    PyObject* result;
};

/// Whether tensors of this class have the stage Python. The first call that returns true installs the stage's fallback.
bool overrides_operators(PyTypeObject* type);

/// Calls the override of an argument's class for Tensor.<method>(*args), and returns its result. Returns null, without
/// an error, if there is no override.
PyObject* call_override(const char* method, PyObject* const* args, Py_ssize_t count);

// Note [Members that classes see]
// The functions in the tables of methods and properties are wrapped in `Seen`, which first calls the override of a
// tensor's class if there is one. For tensors of other classes this costs one or two comparisons. The override receives
// `Tensor.<method>`, or `Tensor.<property>.__get__` or `__set__` for a property. The method that a class inherits by
// default runs the member without overrides and converts the tensors in its result to the class, except for `grad` and
// `_base`, which are returned unchanged.

/// Whether the class of this object may override members of Tensor.
inline bool has_override(PyObject* self) {
    return Py_TYPE(self) != TensorType && (unwrap(self).impl()->stages() & bit(Stage::Python));
}

/// The member that was accessed. `part` is "__get__" or "__set__" for a property, else null.
struct Member {
    const char* name;
    const char* part;
};

/// Calls the override of `self`'s class for a member of Tensor, and returns its result. Returns null, without an error,
/// if there is no override and the caller has to run the member itself. Throws PythonError.
PyObject* answer_by_class(Member member, PyObject* self, PyObject* const* args = nullptr,
                          Py_ssize_t nargs = 0, PyObject* kwnames = nullptr);
/// Does the same as answer_by_class, but receives the arguments in a tuple and a dictionary, each of which may be null.
PyObject* answer_by_class_to_call(Member member, PyObject* self, PyObject* args, PyObject* kwargs);

/// Whether the class of this object has a __torch_function__ that is not the inherited one, and overrides are enabled
/// on this thread.
bool has_own_override(PyObject* self);

/// Returns a property of a tensor whose class may override it.
PyObject* get_by_class(const char* name, PyObject* self, getter get, void* closure);

template <size_t n>
struct Literal {
    char text[n];
    consteval Literal(const char (&given)[n]) { std::copy_n(given, n, text); }
};

/// `Seen<name>::of<f>` is the function of the member `name` in a table of members. It calls the override of the
/// object's class if there is one, and otherwise `f`.
template <Literal member>
struct Seen {
    static constexpr const char* name = member.text;

    template <PyObject* (*f)(PyObject*, PyObject*)>
    static PyObject* of(PyObject* self, PyObject* arg) {  // METH_NOARGS and METH_O
        if (has_override(self)) [[unlikely]] {
            RL_PY_TRY
            if (PyObject* answer = answer_by_class({name, nullptr}, self, &arg, arg != nullptr))
                return answer;
            RL_PY_CATCH
        }
        return f(self, arg);
    }
    template <PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
    static PyObject* of(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
        if (has_override(self)) [[unlikely]] {
            RL_PY_TRY
            if (PyObject* answer = answer_by_class({name, nullptr}, self, args, nargs, kwnames))
                return answer;
            RL_PY_CATCH
        }
        return f(self, args, nargs, kwnames);
    }
    template <PyObject* (*f)(PyObject*, PyObject*, PyObject*)>
    static PyObject* of(PyObject* self, PyObject* args, PyObject* kwargs) {  // METH_VARARGS | METH_KEYWORDS
        if (has_override(self)) [[unlikely]] {
            RL_PY_TRY
            if (PyObject* answer = answer_by_class_to_call({name, nullptr}, self, args, kwargs))
                return answer;
            RL_PY_CATCH
        }
        return f(self, args, kwargs);
    }
    template <PyObject* (*f)(PyObject*, PyObject*)>
    static PyObject* of_tuple(PyObject* self, PyObject* args) {  // METH_VARARGS
        if (has_override(self)) [[unlikely]] {
            RL_PY_TRY
            if (PyObject* answer = answer_by_class_to_call({name, nullptr}, self, args, nullptr))
                return answer;
            RL_PY_CATCH
        }
        return f(self, args);
    }
    template <PyObject* (*f)(PyObject*)>
    static PyObject* of(PyObject* self) {
        if (has_override(self)) [[unlikely]] {
            RL_PY_TRY
            if (PyObject* answer = answer_by_class({name, nullptr}, self)) return answer;
            RL_PY_CATCH
        }
        return f(self);
    }
    template <PyObject* (*f)(PyObject*, void*)>
    static PyObject* get(PyObject* self, void* closure) {
        if (has_override(self)) [[unlikely]]
            return get_by_class(name, self, f, closure);
        return f(self, closure);
    }
    template <int (*f)(PyObject*, PyObject*, void*)>
    static int set(PyObject* self, PyObject* value, void* closure) {
        if (value && has_override(self)) [[unlikely]] {
            RL_PY_TRY
            if (PyObject* answer = answer_by_class({name, "__set__"}, self, &value, 1)) {
                Py_DECREF(answer);
                return 0;
            }
            RL_PY_CATCH_INT
        }
        return f(self, value, closure);
    }
};

/// Called if no signature fits a call. If an argument that is not a Tensor has a __torch_function__, calls it and
/// throws an Overridden that holds its result. `self` is null for functions.
void answer_by_other_class(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames);

/// Returns the tensor as an object of `type` that shares its memory.
PyObject* as_subclass(PyObject* tensor, PyTypeObject* type);

int add_override(PyObject* module);

}  // namespace rushlight::python
