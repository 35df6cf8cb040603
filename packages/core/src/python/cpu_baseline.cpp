// rushlight_core._cpu: checks whether this processor can execute the code of the other libraries, before they are
// loaded.
//
// Note [The check of the processor]
// All other code is compiled for x86-64-v3, and the dynamic linker runs the static initialisers of a library before any
// of its functions can be called. So this check is a separate module. It is compiled for any x86-64 processor (its name
// ends in _baseline, see RushlightNative.cmake) and is not linked to any of our libraries. `tools/check_symbols.py`
// searches it for AVX instructions.
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

namespace {

// The builtins use cpuid, and XGETBV to check that the operating system saves the registers.
bool has_v3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe");
}

// missing(): returns the features that this build needs and this processor lacks, or None.
PyObject* missing(PyObject*, PyObject*) {
    __builtin_cpu_init();
    if (!has_v3()) return PyUnicode_FromString("AVX2 and FMA (x86-64-v3)");
    Py_INCREF(Py_None);
    return Py_None;
}

PyMethodDef functions[] = {{"missing", missing, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_cpu", nullptr, 0, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&definition); }
