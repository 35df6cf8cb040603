// a ** b: the one operator of Python's that takes three operands, pow(a, b, modulus).
#include "python/arguments.h"
#include "rushlight/ops/pow.h"

namespace rushlight::python {
namespace {

bool refuse_modulus(PyObject* modulus) {
    if (modulus == Py_None) return false;
    PyErr_SetString(PyExc_TypeError, "pow(): a tensor takes no modulus\nhint: (a ** b) % modulus");
    return true;
}

}  // namespace

PyObject* tensor_power(PyObject* base, PyObject* exponent, PyObject* modulus) {
    RL_PY_TRY
    if (refuse_modulus(modulus)) return nullptr;
    Operand b(base), e(exponent);
    if (!b || !e) Py_RETURN_NOTIMPLEMENTED;
    return wrap(ops::pow(b, e));
    RL_PY_CATCH
}

PyObject* tensor_inplace_power(PyObject* base, PyObject* exponent, PyObject* modulus) {
    RL_PY_TRY
    if (refuse_modulus(modulus)) return nullptr;
    Operand e(exponent);
    if (!e) Py_RETURN_NOTIMPLEMENTED;
    return wrap(ops::pow_(unwrap(base), e));
    RL_PY_CATCH
}

}  // namespace rushlight::python
