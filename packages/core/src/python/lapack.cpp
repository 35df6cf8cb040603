// A LAPACK library in Python's packages, which rushlight_core._lapack finds.
#include "rushlight/lapack.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

std::string find_in_packages() {
    if (!Py_IsInitialized()) return {};
    WithGil gil;
    std::string paths;
    PyObject* module = PyImport_ImportModule("rushlight_core._lapack");
    PyObject* found = module ? PyObject_CallMethod(module, "find", nullptr) : nullptr;
    if (const char* text = found ? PyUnicode_AsUTF8(found) : nullptr) paths = text;
    PyErr_Clear();  // libraries of the system are tried next
    Py_XDECREF(found);
    Py_XDECREF(module);
    return paths;
}

PyObject* lapack_library_py(PyObject*, PyObject*) {
    const std::string path = lapack_library();
    return PyUnicode_FromStringAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
}

PyMethodDef functions[] = {
    {"_lapack_library", lapack_library_py, METH_NOARGS,
     "Return the path of the LAPACK library in use, or an empty string if none was loaded yet."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_lapack(PyObject* module) {
    set_lapack_finder(find_in_packages);
    return PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::python
