// rushlight_core._bootstrap: checks whether this processor can execute the code of the other libraries, and loads the library
// of the package. It is the first module that is loaded.
//
// Note [The check of the processor]
// All other code is compiled for x86-64-v3, and the dynamic linker runs the static initialisers of a library before any
// of its functions can be called. So this check is a separate module. It is compiled for any x86-64 processor (its name
// ends in _baseline, see RushlightNative.cmake) and is not linked to any of our libraries. `tools/check_symbols.py`
// searches it for AVX instructions.
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <dlfcn.h>

namespace {

// The builtins use cpuid, and XGETBV to check that the operating system saves the registers.
bool has_v3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe");
}

PyObject* none() {
    Py_INCREF(Py_None);
    return Py_None;
}

// missing(): returns the features that this build needs and this processor lacks, or None.
PyObject* missing(PyObject*, PyObject*) {
    __builtin_cpu_init();
    return has_v3() ? none() : PyUnicode_FromString("AVX2 and FMA (x86-64-v3)");
}

// dlopen(path): loads a library whose symbols are found only by libraries that are linked to it. Importing ctypes, which can
// do the same, takes ten times as long.
PyObject* load(PyObject*, PyObject* path) {
    PyObject* bytes = nullptr;
    if (!PyUnicode_FSConverter(path, &bytes)) return nullptr;
    const bool loaded = dlopen(PyBytes_AsString(bytes), RTLD_NOW | RTLD_LOCAL) != nullptr;
    Py_DECREF(bytes);
    if (loaded) return none();
    if (PyObject* reason = PyUnicode_DecodeFSDefault(dlerror())) {
        PyErr_SetObject(PyExc_OSError, reason);
        Py_DECREF(reason);
    }
    return nullptr;
}

PyMethodDef functions[] = {{"missing", missing, METH_NOARGS, nullptr},
                           {"dlopen", load, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_bootstrap", nullptr, 0, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__bootstrap() { return PyModule_Create(&definition); }
