// Tensor subclasses that override operators: __torch_function__.
#pragma once

#include <algorithm>

#include "python/python.h"
#include "rushlight/dispatch.h"

namespace rushlight::python {

// Note [__torch_function__]
// A subclass of Tensor may define `__torch_function__(cls, func, types, args, kwargs)`. Its tensors carry the stage Python,
// the highest, whose boxed fallback calls the method instead of the operator. A subclass that defines none keeps its type:
// results of operators on its tensors are of that class (the inherited method ensures it). One that sets
// `__torch_function__ = _C._disabled_torch_function_impl`, as Parameter does, carries no stage and costs nothing; its
// results are plain tensors.
//
// Methods and properties that are not operators (size, numpy, shape, len) go the same way, as Note [Members that classes see]
// describes.
//
// An override may return anything. What does not fit the operator's result types leaves C++ as the exception Overridden
// and arrives in Python as the result of the call.

/// The result of a call that an override has handled; owns a reference.
struct Overridden {
    PyObject* result;
};

/// Whether tensors of this class carry the stage Python. Installs the stage's fallback at the first one.
bool overrides_operators(PyTypeObject* type);

/// Answers Tensor.<method>(*args) by the override of an argument's class; null, without an error, where there is none.
PyObject* call_override(const char* method, PyObject* const* args, Py_ssize_t count);

// Note [Members that classes see]
// The entries of method and property tables are wrapped in `Seen`, which calls the class of a tensor first if that overrides
// operators. For tensors of other classes this is one comparison, or two. The override receives `Tensor.<method>`, or
// for a property `Tensor.<property>.__get__` or `__set__`. The method that a class inherits by default runs the member
// without overrides and converts the tensors of its result to the class, except for `grad` and `_base`, which are
// returned unchanged.

/// Whether the class of this object may override it.
inline bool has_override(PyObject* self) {
    return Py_TYPE(self) != TensorType && (unwrap(self).impl()->stages() & bit(Stage::Python));
}

/// Which member was accessed: of a property the part "__get__" or "__set__", else null.
struct Member {
    const char* name;
    const char* part;
};

/// The result of the override of `self`'s class for a member of Tensor; null, without an error, if there is none and the
/// member itself has to run. Throws PythonError.
PyObject* answer_by_class(Member member, PyObject* self, PyObject* const* args = nullptr,
                          Py_ssize_t nargs = 0, PyObject* kwnames = nullptr);
/// The same for arguments in a tuple and a dictionary, each of which may be null.
PyObject* answer_by_class_to_call(Member member, PyObject* self, PyObject* args, PyObject* kwargs);

/// Whether the class of this object has a __torch_function__ that is not the inherited one, on this thread now.
bool has_own_override(PyObject* self);

/// A property of a tensor whose class may override it.
PyObject* get_by_class(const char* name, PyObject* self, getter get, void* closure);

template <size_t n>
struct Literal {
    char text[n];
    consteval Literal(const char (&given)[n]) { std::copy_n(given, n, text); }
};

/// `Seen<name>::of<f>` is what a table holds in place of `f`, the function of the member `name`.
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

/// For a call that no signature fits: an argument that is no Tensor may handle it by its own __torch_function__;
/// its result is thrown as Overridden. `self` is null for functions.
void answer_by_other_class(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames);

/// The tensor as an object of `type`, over the same memory.
PyObject* as_subclass(PyObject* tensor, PyTypeObject* type);

int add_override(PyObject* module);

}  // namespace rushlight::python
