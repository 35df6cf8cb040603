// Conversion of C++ results to Python objects.
#pragma once

#include <initializer_list>
#include <tuple>
#include <vector>

#include "python/python.h"

namespace rushlight::python {

/// The named tuple of an operator with several results, for example torch.return_types.max.
class ResultFields {
  public:
    ResultFields(const char* op, std::initializer_list<const char*> fields) : op_(op), fields_(fields) {}
    /// Returns a new, empty instance. The type is made on first use.
    PyObject* make();

  private:
    const char* op_;
    std::vector<const char*> fields_;
    PyTypeObject* type_ = nullptr;
};

PyObject* wrap(const std::vector<Tensor>& list);
PyObject* wrap(Scalar s);
inline PyObject* wrap(bool v) { return PyBool_FromLong(v); }
inline PyObject* wrap(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* wrap(double v) { return PyFloat_FromDouble(v); }

template <class... T>
PyObject* wrap(std::tuple<T...> results) {
    Object tuple = Object::steal(PyTuple_New(sizeof...(T)));
    std::apply(
        [&](auto&... r) {
            Py_ssize_t i = 0;
            (PyTuple_SET_ITEM(tuple.get(), i++, wrap(std::move(r))), ...);
        },
        results);
    return tuple.release();
}

template <class... T>
PyObject* wrap(std::tuple<T...> results, ResultFields& fields) {
    Object tuple = Object::steal(fields.make());
    std::apply(
        [&](auto&... r) {
            Py_ssize_t i = 0;
            (PyStructSequence_SetItem(tuple.get(), i++, wrap(std::move(r))), ...);
        },
        results);
    return tuple.release();
}

}  // namespace rushlight::python
