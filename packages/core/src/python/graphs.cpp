// Graphs of devices, for rushlight_core._graphs. Graphs are capsules; streams and pools are ints.
#include "rushlight/graphs.h"

#include "python/arguments.h"

namespace rushlight::python {
namespace {

constexpr const char* kGraph = "rushlight.DeviceGraph";

DeviceGraph& graph_of(PyObject* capsule) {
    auto* graph = static_cast<DeviceGraph*>(PyCapsule_GetPointer(capsule, kGraph));
    if (!graph) throw PythonError();
    return *graph;
}

// _new_graph(device) -> graph
PyObject* new_graph(PyObject*, PyObject* o) {
    RL_PY_TRY
    Device device;
    RL_CHECK(to_device(o, device), throw_type, "Graph(device): must be a device, a str or an int, not %s",
             Py_TYPE(o)->tp_name);
    auto graph = DeviceGraph::make(device);
    PyObject* capsule = PyCapsule_New(graph.get(), kGraph, [](PyObject* c) {
        Ref<DeviceGraph>::adopt(static_cast<DeviceGraph*>(PyCapsule_GetPointer(c, kGraph)));
    });
    if (capsule) graph.release();
    return capsule;
    RL_PY_CATCH
}
// _begin_capture(graph, stream, pool)
PyObject* begin_capture(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 3, throw_type, "_begin_capture takes 3 arguments, got %zd", nargs);
    void* stream = PyLong_AsVoidPtr(args[1]);
    if (!stream && PyErr_Occurred()) throw PythonError();
    const unsigned long long pool = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred()) throw PythonError();
    graph_of(args[0]).begin(stream, pool);
    Py_RETURN_NONE;
    RL_PY_CATCH
}
template <void (DeviceGraph::*method)()>
PyObject* call(PyObject*, PyObject* o) {
    RL_PY_TRY(graph_of(o).*method)();
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyObject* abandon(PyObject*, PyObject* o) {
    RL_PY_TRY graph_of(o).abandon();
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyObject* pool_of(PyObject*, PyObject* o) {
    RL_PY_TRY return PyLong_FromUnsignedLongLong(graph_of(o).pool());
    RL_PY_CATCH
}
// _graph_handle(graph) -> int
PyObject* handle_of(PyObject*, PyObject* o) {
    RL_PY_TRY return PyLong_FromVoidPtr(graph_of(o).handle());
    RL_PY_CATCH
}
PyObject* new_pool(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(new_graph_pool()); }
// _is_capturing(device) -> bool, for the current stream
PyObject* is_capturing_py(PyObject*, PyObject* o) {
    RL_PY_TRY
    Device device;
    RL_CHECK(to_device(o, device), throw_type,
             "is_current_stream_capturing(device): must be a device, a str or an int, not %s",
             Py_TYPE(o)->tp_name);
    if (device.type == DeviceType::CPU || device.type == DeviceType::Meta) Py_RETURN_FALSE;
    device = resolve(device);
    return PyBool_FromLong(is_capturing(device, current_stream(device)));
    RL_PY_CATCH
}

PyMethodDef functions[] = {
    {"_new_graph", new_graph, METH_O, nullptr},
    {"_begin_capture", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(begin_capture)),
     METH_FASTCALL, nullptr},
    {"_end_capture", call<&DeviceGraph::end>, METH_O, nullptr},
    {"_abandon_capture", abandon, METH_O, nullptr},
    {"_replay", call<&DeviceGraph::replay>, METH_O, nullptr},
    {"_reset_graph", call<&DeviceGraph::reset>, METH_O, nullptr},
    {"_graph_pool", pool_of, METH_O, nullptr},
    {"_graph_handle", handle_of, METH_O, nullptr},
    {"_new_graph_pool", new_pool, METH_NOARGS, nullptr},
    {"_is_capturing", is_capturing_py, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_graphs(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
