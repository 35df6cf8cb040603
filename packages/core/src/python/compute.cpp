// Functions that query and select the libraries and kernels for computations, for rushlight.backends.
#include "cpu/kernels_in_use.h"
#include "ops/attention_choice.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

PyObject* cpu_capability(PyObject*, PyObject*) {
    RL_PY_TRY
    return PyUnicode_FromString(cpu::capability_in_use());
    RL_PY_CATCH
}

PyObject* has_onednn(PyObject*, PyObject*) {
    RL_PY_TRY
    return PyBool_FromLong(cpu::has_onednn());
    RL_PY_CATCH
}

PyObject* use_onednn(PyObject*, PyObject* on) {
    int value = PyObject_IsTrue(on);
    if (value < 0) return nullptr;
    cpu::use_onednn(value);
    Py_RETURN_NONE;
}

PyObject* winograd(PyObject*, PyObject*) { return PyBool_FromLong(cpu::winograd()); }

PyObject* use_winograd(PyObject*, PyObject* on) {
    int value = PyObject_IsTrue(on);
    if (value < 0) return nullptr;
    cpu::use_winograd(value);
    Py_RETURN_NONE;
}

PyObject* choose_attention_py(PyObject*, PyObject* args) {
    int fused, composed;
    if (!PyArg_ParseTuple(args, "pp:_choose_attention", &fused, &composed)) return nullptr;
    choose_attention(fused, composed);
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_cpu_capability", cpu_capability, METH_NOARGS,
     "Return which CPU kernels are used: \"avx2\" or \"avx512\"."},
    {"_has_onednn", has_onednn, METH_NOARGS, "Return whether oneDNN can compute convolutions."},
    {"_use_onednn", use_onednn, METH_O, "Set whether oneDNN computes convolutions."},
    {"_winograd", winograd, METH_NOARGS,
     "Return whether 3x3 convolutions may be computed by Winograd's minimal filtering."},
    {"_use_winograd", use_winograd, METH_O,
     "Set whether 3x3 convolutions may be computed by Winograd's minimal filtering."},
    {"_choose_attention", choose_attention_py, METH_VARARGS,
     "_choose_attention(fused, composed): set which implementations may compute attention."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_compute(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
