// rushlight_core._C: the extension module.
#include "python/tables.h"
#include "rushlight/abi.h"

namespace rushlight::python {
namespace {

int execute(PyObject* module) {
    for (auto add : {add_small_types,     add_tensor_type, add_storage_type,   add_indexing, add_creation,
                     add_dtype_functions, add_buffers,     add_dlpack,         add_modes,    add_override,
                     add_overridable,     add_capsule,     add_introspection,  add_sites,    add_interrupts,
                     add_devices,         add_streams,     add_graphs,         add_stages,   add_errors,
                     add_lapack,          add_compute,     add_default_device, add_sparse,   add_collective,
                     add_caller_locks})
        if (add(module) < 0) return -1;
    if (PyModule_AddStringConstant(module, "__version__", RUSHLIGHT_VERSION) < 0 ||
        PyModule_AddStringConstant(module, "_abi", RUSHLIGHT_ABI) < 0)
        return -1;
    return PyModule_AddFunctions(module, generated_functions);
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight_core._C",
                          "The tensor library of rushlight.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace rushlight::python

PyMODINIT_FUNC PyInit__C() {
    PyObject* module = PyModule_Create(&rushlight::python::definition);
    if (module && rushlight::python::execute(module) < 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
