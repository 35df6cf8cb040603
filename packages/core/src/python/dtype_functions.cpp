// Functions about dtypes: promotion and casts.
#include "python/arguments.h"
#include "python/docstrings.h"
#include "python/results.h"
#include "tensor/promotion.h"

namespace rushlight::python {
namespace {

DType dtype_argument(PyObject* o, const char* what) {
    DType t;
    RL_CHECK(to_dtype(o, t), throw_type, "%s: must be a dtype, not %s", what, Py_TYPE(o)->tp_name);
    return t;
}

PyObject* promote_types(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"type1", "type2", nullptr};
    PyObject *a, *b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:promote_types", const_cast<char**>(names), &a, &b))
        return nullptr;
    RL_PY_TRY
    return wrap(
        promote(dtype_argument(a, "promote_types(type1)"), dtype_argument(b, "promote_types(type2)")));
    RL_PY_CATCH
}

PyObject* can_cast_py(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"from_", "to", nullptr};
    PyObject *from, *to;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:can_cast", const_cast<char**>(names), &from, &to))
        return nullptr;
    RL_PY_TRY
    return wrap(can_cast(dtype_argument(from, "can_cast(from_)"), dtype_argument(to, "can_cast(to)")));
    RL_PY_CATCH
}

// _dtype_of(value): returns the dtype of an argument that is a dtype or a Python type; None for other objects.
PyObject* dtype_of_value(PyObject*, PyObject* value) {
    RL_PY_TRY
    DType t;
    if (!to_dtype(value, t)) Py_RETURN_NONE;
    return wrap(t);
    RL_PY_CATCH
}

// The signatures have PyTorch's names for each combination of tensors and numbers.
PyObject* result_type(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    constexpr auto kAny = ArgType::TensorOrScalar;
    static constexpr ArgSpec plain[] = {{"tensor", nullptr, kAny, 0, 0}, {"other", nullptr, kAny, 0, 0}},
                             number[] = {{"scalar", nullptr, kAny, 0, 0}, {"tensor", nullptr, kAny, 0, 0}},
                             numbers[] = {{"scalar1", nullptr, kAny, 0, 0}, {"scalar2", nullptr, kAny, 0, 0}};
    static constexpr Signature signatures[] = {
        {"result_type(TensorOrScalar tensor, TensorOrScalar other) -> dtype", plain, 2, 0},
        {"result_type(TensorOrScalar scalar, TensorOrScalar tensor) -> dtype", number, 2, 0},
        {"result_type(TensorOrScalar scalar1, TensorOrScalar scalar2) -> dtype", numbers, 2, 0}};
    Parser p;
    p.parse("result_type", signatures, 3, nullptr, args, nargs, kwnames);
    const TensorOrScalar operands[] = {p.tensor_or_scalar(0), p.tensor_or_scalar(1)};
    return wrap(result_dtype(operands));
    RL_PY_CATCH
}

#define RL_KEYWORDS(f) \
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), METH_VARARGS | METH_KEYWORDS

PyMethodDef functions[] = {
    {"_dtype_of", dtype_of_value, METH_O, nullptr},
    {"promote_types", RL_KEYWORDS(promote_types), docstrings::promote_types_},
    {"can_cast", RL_KEYWORDS(can_cast_py), docstrings::can_cast_},
    {"result_type", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(result_type)),
     METH_FASTCALL | METH_KEYWORDS, docstrings::result_type_},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_dtype_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
