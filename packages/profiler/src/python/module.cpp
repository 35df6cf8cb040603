// rushlight_profiler._C: starting, stopping and reading recordings.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstring>

#include "python/collect.h"
#include "python/record_function.h"
#include "recorder.h"
#include "rushlight/abi.h"
#include "rushlight/python.h"

namespace rushlight::profiler {
namespace {

// Checks that the module was built for the installed core, and that only one copy of librushlight.so is loaded.
bool core_fits() {
    PyObject* core = PyImport_ImportModule("rushlight_core._C");
    if (!core) return false;
    Py_DECREF(core);
    auto* api = static_cast<const PythonApi*>(PyCapsule_Import(kPythonCapsule, 0));
    if (!api) return false;
    if (std::strcmp(api->abi, RUSHLIGHT_ABI) != 0) {
        PyErr_Format(
            PyExc_ImportError,
            "rushlight-profiler was built for rushlight-core %s, but rushlight-core %s is installed\n"
            "hint: install rushlight packages of the same release",
            RUSHLIGHT_ABI, api->abi);
        return false;
    }
    if (api->instance != instance()) {
        PyErr_SetString(PyExc_ImportError,
                        "rushlight-profiler found a second copy of librushlight.so in this process\n"
                        "hint: uninstall one of the two copies, or remove it from LD_LIBRARY_PATH");
        return false;
    }
    return true;
}

PyObject* py_start(PyObject*, PyObject* args) {
    unsigned long long wanted, capacity;
    if (!PyArg_ParseTuple(args, "KK:start", &wanted, &capacity)) return nullptr;
    try {
        if (!start(wanted, capacity)) {
            PyErr_SetString(PyExc_RuntimeError,
                            "profile.start(): another profile is recording\n"
                            "hint: stop the other profile first: a process can record only one at a time");
            return nullptr;
        }
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
        return nullptr;
    }
    Py_RETURN_NONE;
}
PyObject* py_stop(PyObject*, PyObject*) { return PyBool_FromLong(stop()); }
PyObject* py_recording(PyObject*, PyObject*) { return PyBool_FromLong(current_session() != 0); }
PyObject* py_join(PyObject*, PyObject* thread_name) {
    const char* name = PyUnicode_AsUTF8(thread_name);
    if (!name) return nullptr;
    if (Lane* lane = join()) {
        std::lock_guard guard(registry().lock);
        lane->thread_name = name;
    }
    Py_RETURN_NONE;
}
PyObject* py_wanted(PyObject*, PyObject*) {
    const uint64_t session = current_session();
    if (!session) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(session & ((1u << kNumberShift) - 1));
}
// Converts a recording, which `read` returns, to events of two named tuple types.
template <class Read>
PyObject* converted(Read read, PyObject* event_type, PyObject* argument_type) {
    auto* event = reinterpret_cast<PyTypeObject*>(event_type);
    auto* argument = reinterpret_cast<PyTypeObject*>(argument_type);
    if (!PyType_IsSubtype(event, &PyTuple_Type) || !PyType_IsSubtype(argument, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "collect(event_type, argument_type): both must be named tuples");
        return nullptr;
    }
    try {
        return to_python(read(), event, argument);
    } catch (const std::bad_alloc&) { return PyErr_NoMemory(); }
}
PyObject* py_collect(PyObject*, PyObject* args) {
    int release;
    PyObject *event_type, *argument_type;
    if (!PyArg_ParseTuple(args, "pO!O!:collect", &release, &PyType_Type, &event_type, &PyType_Type,
                          &argument_type))
        return nullptr;
    return converted([&] { return collect(release); }, event_type, argument_type);
}
PyObject* py_copy_events(PyObject*, PyObject* args) {
    PyObject *event_type, *argument_type;
    if (!PyArg_ParseTuple(args, "O!O!:copy_events", &PyType_Type, &event_type, &PyType_Type, &argument_type))
        return nullptr;
    return converted(copy_records, event_type, argument_type);
}

PyMethodDef functions[] = {
    {"start", py_start, METH_VARARGS,
     "start(wanted, capacity): Begin a recording. Raises RuntimeError if another recording is active."},
    {"stop", py_stop, METH_NOARGS, "End the recording, and return whether a recording was active."},
    {"collect", py_collect, METH_VARARGS,
     "collect(release, event_type, argument_type): Return the data of the last recording. The recorder deletes its copy."},
    {"copy_events", py_copy_events, METH_VARARGS,
     "copy_events(event_type, argument_type): Return the data recorded so far, in the form that collect returns, without discarding it."},
    {"wanted", py_wanted, METH_NOARGS,
     "Return which optional data are recorded, as a combination of SHAPES, MEMORY and STACKS, or None if no recording is "
     "active."},
    {"recording", py_recording, METH_NOARGS, "Return whether a recording is active."},
    {"join", py_join, METH_O,
     "join(thread_name): Record this thread's operators too, if a recording is active."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight_profiler._C",
                          "The recorder of rushlight's profiler.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace rushlight::profiler

PyMODINIT_FUNC PyInit__C() {
    using namespace rushlight::profiler;
    if (!core_fits()) return nullptr;
    PyObject* module = PyModule_Create(&definition);
    if (!module) return nullptr;
    if (PyModule_AddIntConstant(module, "SHAPES", kShapes) < 0 ||
        PyModule_AddIntConstant(module, "MEMORY", kMemory) < 0 ||
        PyModule_AddIntConstant(module, "STACKS", kStacks) < 0 || add_record_function(module) < 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
