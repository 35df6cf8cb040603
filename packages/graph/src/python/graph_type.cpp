// rushlight_graph._C.Graph: a graph without the values of its constants, which can be converted to text and drawings.
#include "support.h"

namespace rushlight::graph {
namespace {

struct PyGraph {
    PyObject_HEAD Graph* graph;
};
PyTypeObject* graph_type = nullptr;

Object list_of(const std::vector<std::string>& texts) {
    Object list = checked(PyList_New(0));
    for (const std::string& text : texts)
        if (PyList_Append(list.get(), text_object(text).get()) < 0) throw PythonError();
    return list;
}

void graph_dealloc(PyObject* self) {
    delete reinterpret_cast<PyGraph*>(self)->graph;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
PyObject* graph_parse(PyObject*, PyObject* text) {
    return guarded([&] { return wrap_graph(parse(text_of(text))); });
}
PyObject* graph_str(PyObject* self) {
    return guarded([&] { return text_object(to_text(graph_of(self))).release(); });
}
PyObject* graph_json(PyObject* self, PyObject*) {
    return guarded([&] { return text_object(to_json(graph_of(self))).release(); });
}
PyObject* graph_svg(PyObject* self, PyObject*) {
    return guarded([&] { return text_object(to_svg(graph_of(self))).release(); });
}
PyObject* graph_differences(PyObject* self, PyObject* other) {
    return guarded([&] { return list_of(differences(graph_of(self), graph_of(other))).release(); });
}
PyObject* graph_constants(PyObject* self, PyObject*) {
    return guarded([&] {
        std::vector<std::string> names;
        for (const Constant& constant : graph_of(self).constants) names.push_back(constant.name);
        return list_of(names).release();
    });
}

PyObject* graph_memory(PyObject* self, PyObject*) {
    return guarded([&] {
        const MemoryPlan plan = plan_memory(graph_of(self));
        return checked(Py_BuildValue("{sLsL}", "peak", static_cast<long long>(plan.peak), "block",
                                     static_cast<long long>(plan.block)))
            .release();
    });
}

PyMethodDef methods[] = {
    {"parse", graph_parse, METH_O | METH_STATIC, "Return the graph whose str() is `text`."},
    {"json", graph_json, METH_NOARGS, "Return the graph as JSON, in the form that exported files contain."},
    {"svg", graph_svg, METH_NOARGS,
     "Return a drawing of the graph as SVG: a box for each input and call, with lines to the calls that use its results."},
    {"differences", graph_differences, METH_O,
     "Return a line for each difference from `other`. The line begins with - for a part that only this graph "
     "has, with + for a part that only `other` has, and with ~ for a part that differs."},
    {"memory", graph_memory, METH_NOARGS,
     "Return how many bytes of memory a run with the example's sizes needs for the results of operators: `peak` is the "
     "largest total size of results that exist at the same time, and `block` is the size of one block of memory in which "
     "all results can be placed. A run allocates each result separately, and needs about `peak` bytes plus the scratch "
     "memory of the operators."},
    {"constants", graph_constants, METH_NOARGS, "Return the names of the constants."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(graph_dealloc)},
    {Py_tp_str, reinterpret_cast<void*>(graph_str)},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     const_cast<char*>("The operator calls of an exported program, without its constants.\n\n"
                       "str() returns a text that Graph.parse reads.\n\n"
                       "Example:\n"
                       "    >>> graph = torch.export.export(nn.Linear(2, 3), (torch.ones(1, 2),)).graph\n"
                       "    >>> str(type(graph).parse(str(graph))) == str(graph)\n"
                       "    True")},
    {0, nullptr}};
PyType_Spec spec = {"rushlight_graph._C.Graph", sizeof(PyGraph), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

bool add_graph_type(PyObject* module) {
    graph_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return graph_type && PyModule_AddObjectRef(module, "Graph", reinterpret_cast<PyObject*>(graph_type)) == 0;
}
PyObject* wrap_graph(const Graph& graph) {
    Object self = checked(graph_type->tp_alloc(graph_type, 0));
    reinterpret_cast<PyGraph*>(self.get())->graph = new Graph(graph);
    return self.release();
}
const Graph& graph_of(PyObject* object) {
    RL_CHECK(Py_TYPE(object) == graph_type, throw_type, "needs a Graph, got %s", Py_TYPE(object)->tp_name);
    return *reinterpret_cast<PyGraph*>(object)->graph;
}

}  // namespace rushlight::graph
