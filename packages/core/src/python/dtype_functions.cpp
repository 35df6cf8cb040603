// Functions of dtypes: promotion and casts.
#include "ops/pointwise.h"
#include "python/arguments.h"
#include "python/results.h"

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

PyObject* result_type(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"tensor", "other", nullptr};
    PyObject* given[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:result_type", const_cast<char**>(names), &given[0],
                                     &given[1]))
        return nullptr;
    RL_PY_TRY
    Operand a(given[0]), b(given[1]);
    RL_CHECK(a && b, throw_type, "result_type(tensor, other): must be Tensors or Numbers, not %s and %s",
             Py_TYPE(given[0])->tp_name, Py_TYPE(given[1])->tp_name);
    const TensorOrScalar operands[] = {a, b};
    return wrap(result_dtype(operands));
    RL_PY_CATCH
}

#define RL_KEYWORDS(f) \
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), METH_VARARGS | METH_KEYWORDS

PyMethodDef functions[] = {
    {"promote_types", RL_KEYWORDS(promote_types),
     "promote_types(type1, type2) -> dtype\n\nThe smallest dtype that holds values of both."},
    {"can_cast", RL_KEYWORDS(can_cast_py),
     "can_cast(from_, to) -> bool\n\nWhether results of one dtype may be written to tensors of another: a category "
     "(bool, integer, floating, complex) never narrows."},
    {"result_type", RL_KEYWORDS(result_type),
     "result_type(tensor, other) -> dtype\n\nThe dtype of arithmetic on two tensors or numbers."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_dtype_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
