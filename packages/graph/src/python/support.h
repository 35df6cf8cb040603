// Helpers for all parts of rushlight_graph._C.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/graph/graph.h"
#include "rushlight/python.h"

namespace rushlight::graph {

extern const PythonApi* api;

struct PythonError {};  // thrown when a Python error is set

// Runs `body` and converts C++ exceptions to Python's.
template <class F>
PyObject* guarded(F&& body) {
    try {
        return body();
    } catch (const PythonError&) {
    } catch (...) { api->set_error(); }
    return nullptr;
}

struct DecRef {
    void operator()(PyObject* o) const { Py_XDECREF(o); }
};
using Object = std::unique_ptr<PyObject, DecRef>;
inline Object checked(PyObject* o) {
    if (!o) throw PythonError();
    return Object(o);
}

inline std::string text_of(PyObject* o) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) throw PythonError();
    return {text, static_cast<size_t>(size)};
}
inline Object text_object(const std::string& text) {
    // File names in source lines may not be valid UTF-8.
    return checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

inline Tensor tensor_of(PyObject* o) {
    TensorImpl* impl = api->unwrap(o);
    RL_CHECK(impl, throw_type, "needs a Tensor, got %s", Py_TYPE(o)->tp_name);
    return Tensor::share(impl);
}
inline std::vector<Tensor> tensors_of(PyObject* sequence) {
    const Object fast = checked(PySequence_Fast(sequence, "needs a sequence of tensors"));
    std::vector<Tensor> tensors;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
        tensors.push_back(tensor_of(PySequence_Fast_GET_ITEM(fast.get(), i)));
    return tensors;
}
inline Object tensor_list(TensorList tensors) {
    Object list = checked(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
    for (size_t i = 0; i < tensors.size(); ++i)
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                        checked(static_cast<PyObject*>(api->wrap(tensors[i].impl()))).release());
    return list;
}

inline std::map<std::string, std::string> texts_of(PyObject* dict) {
    RL_CHECK(PyDict_Check(dict), throw_type, "needs a dict, got %s", Py_TYPE(dict)->tp_name);
    std::map<std::string, std::string> texts;
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &at, &key, &value)) texts[text_of(key)] = text_of(value);
    return texts;
}

// Runs `body` without the GIL, because operators do not need it.
template <class F>
auto without_gil(F&& body) {
    struct Released {
        PyThreadState* state = PyEval_SaveThread();
        ~Released() { PyEval_RestoreThread(state); }
    } released;
    return body();
}

// --- Graph: graph_type.cpp ---

/// Adds the type Graph to the module. Returns false if a Python error is set.
bool add_graph_type(PyObject* module);
PyObject* wrap_graph(const Graph& graph);
/// Returns the graph of a Python object. Raises TypeError if the object is not a Graph.
const Graph& graph_of(PyObject* object);

}  // namespace rushlight::graph
