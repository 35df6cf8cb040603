// Code that number slots share, and the slots that do more than call an operator: ~a, and a ** b, for which pow() may
// pass a third operand, the modulus.
#include "python/arguments.h"
#include "python/conversions.h"
#include "python/override.h"
#include "rushlight/ops/pow.h"

namespace rushlight::python {

PyObject* nb_invert(PyObject* a);  // generated

namespace {

bool refuse_modulus(PyObject* modulus) {
    if (modulus == Py_None) return false;
    PyErr_SetString(PyExc_TypeError,
                    "pow(): the third argument, a modulus, is not supported for tensors\n"
                    "hint: use (a ** b) % modulus");
    return true;
}

PyObject* power(PyObject* base, PyObject* exponent) { return tensor_power(base, exponent, Py_None); }
PyObject* inplace_power(PyObject* base, PyObject* exponent) {
    return tensor_inplace_power(base, exponent, Py_None);
}

}  // namespace

PyObject* other_operands(BinarySlot slot, const char* name, PyObject* a, PyObject* b) {
    PyObject* operands[] = {a, b};
    answer_by_other_class(name, nullptr, operands, 2, nullptr);
    if (!is_numpy_array(a) && !is_numpy_array(b)) Py_RETURN_NOTIMPLEMENTED;
    Object converted[2];
    for (int i = 0; i < 2; ++i)
        converted[i] = is_numpy_array(operands[i])
                           ? Object::steal(wrap(from_array(operands[i], ArrayCopy::IfNeeded, name)))
                           : Object::borrow(operands[i]);
    if (!is_tensor(converted[0].get()) && !is_tensor(converted[1].get())) Py_RETURN_NOTIMPLEMENTED;
    return slot(converted[0].get(), converted[1].get());
}

// Python's ~ is defined for integers only. For other tensors, ~ raises a TypeError, as Python does for operands of a
// wrong type. bitwise_not() raises another error.
PyObject* tensor_invert(PyObject* self) {
    RL_PY_TRY
    RL_CHECK(is_integral(unwrap(self).dtype(), true) || has_override(self), throw_type,
             "~: must be a tensor of integers or bools, not of %s", name(unwrap(self).dtype()));
    return nb_invert(self);
    RL_PY_CATCH
}

PyObject* tensor_power(PyObject* base, PyObject* exponent, PyObject* modulus) {
    RL_PY_TRY
    if (refuse_modulus(modulus)) return nullptr;
    Operand b(base), e(exponent);
    if (!b || !e) return other_operands(power, "pow", base, exponent);
    return wrap(ops::pow(b, e));
    RL_PY_CATCH
}

PyObject* tensor_inplace_power(PyObject* base, PyObject* exponent, PyObject* modulus) {
    RL_PY_TRY
    if (refuse_modulus(modulus)) return nullptr;
    Operand e(exponent);
    if (!e) return other_operands(inplace_power, "pow_", base, exponent);
    return wrap(ops::pow_(unwrap(base), e));
    RL_PY_CATCH
}

}  // namespace rushlight::python
