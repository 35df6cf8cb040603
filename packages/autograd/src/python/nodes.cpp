// grad_fn in Python: names, edges and hooks of recorded nodes.
#include "python.h"

#include <cstring>
#include <map>
#include <string>

#include "rushlight/autograd/saved.h"

namespace rushlight::autograd::python {
namespace {

struct PyNode {
    PyObject_HEAD Ref<Node> node;
};
PyTypeObject* NodeType = nullptr;

Node& node_of(PyObject* self) {
    Node* node = unwrap_node(self);
    RL_CHECK(node, throw_runtime,
             "this context has no node: its call was not recorded, or its graph was freed");
    return *node;
}

void dealloc(PyObject* self) {
    reinterpret_cast<PyNode*>(self)->node.~Ref<Node>();
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
PyObject* repr(PyObject* self) {
    Node& node = node_of(self);
    return PyUnicode_FromFormat("<%s object at %p>", node.name().c_str(), static_cast<void*>(&node));
}
// Returns the subclass of Node with this name. PyTorch's nodes have such classes, and programs read their names.
PyTypeObject* class_named(const std::string& name) {
    static std::map<std::string, PyTypeObject*> known;
    const auto [entry, is_new] = known.try_emplace("rushlight_autograd." + name, nullptr);
    if (is_new) {
        static PyType_Slot none[] = {{0, nullptr}};
        // The class refers to the text of the key.
        PyType_Spec spec{entry->first.c_str(), sizeof(PyNode), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, none};
        entry->second = reinterpret_cast<PyTypeObject*>(
            PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(NodeType)));
        if (!entry->second) {
            known.erase(entry);
            throw PythonFailure();
        }
    }
    return entry->second;
}
// Each access creates a new wrapper; two wrappers are equal if they have the same node.
PyObject* compare(PyObject* a, PyObject* b, int how) {
    Node* other = unwrap_node(b);
    if (!other || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((unwrap_node(a) == other) == (how == Py_EQ));
}
Py_hash_t hash(PyObject* self) {
    auto value = static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(unwrap_node(self)) >> 4);
    return value == -1 ? -2 : value;
}

}  // namespace

PyObject* node_name(PyObject* self, PyObject*) {
    RL_TRY return PyUnicode_FromString(node_of(self).name().c_str());
    RL_CATCH
}
PyObject* node_sequence(PyObject* self, PyObject*) {
    RL_TRY return PyLong_FromUnsignedLongLong(node_of(self).sequence());
    RL_CATCH
}
PyObject* node_next_functions(PyObject* self, void*) {
    RL_TRY
    auto edges = node_of(self).edges();
    Object tuple(check(PyTuple_New(static_cast<Py_ssize_t>(edges.size()))));
    for (size_t i = 0; i < edges.size(); ++i) {
        Object target(check(wrap_node(edges[i].node)));
        PyObject* pair = check(Py_BuildValue("(OI)", target.get(), edges[i].index));
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), pair);
    }
    return tuple.release();
    RL_CATCH
}
PyObject* node_variable(PyObject* self, void*) {
    auto* leaf = dynamic_cast<AccumulateGrad*>(unwrap_node(self));
    if (!leaf) {
        PyErr_Format(PyExc_AttributeError, "'%s' has no attribute 'variable'", Py_TYPE(self)->tp_name);
        return nullptr;
    }
    return wrap(leaf->variable());
}
PyObject* node_metadata(PyObject* self, void*) {
    RL_TRY
    auto& metadata = node_of(self).hooks().metadata;
    if (!metadata)
        metadata = std::shared_ptr<void>(check(PyDict_New()), [](void* dict) {
            if (!Py_IsInitialized()) return;
            WithGil gil;
            Py_DECREF(static_cast<PyObject*>(dict));
        });
    return Py_NewRef(static_cast<PyObject*>(metadata.get()));
    RL_CATCH
}
PyObject* node_site(PyObject* self, void*) {
    RL_TRY
    std::string text = describe(node_of(self).site());
    if (text.empty()) Py_RETURN_NONE;
    return PyUnicode_FromString(text.c_str());
    RL_CATCH
}
// Returns the attribute _saved_<name>: a saved tensor or value, as in PyTorch. Raises AttributeError for other names.
static PyObject* saved_attribute(PyObject* self, const char* name) {
    RL_TRY
    Node& node = node_of(self);
    const SavedTensor* found = nullptr;
    node.saved([&](const std::string& field, const SavedTensor& saved) {
        // The first argument is called input here and self in PyTorch.
        if (field == name || (field == "input" && std::strcmp(name, "self") == 0)) found = &saved;
    });
    if (found) return check(wrap(found->unpack(&node)));
    RL_CHECK(!node.released(), throw_runtime,
             "%s: its saved tensors were freed by backward()\n"
             "hint: pass retain_graph=True to backward() to read them afterwards",
             node.name().c_str());
    PyErr_Format(PyExc_AttributeError, "%s saved nothing under the name '%s'", node.name().c_str(), name);
    return nullptr;
    RL_CATCH
}
PyObject* node_getattr(PyObject* self, PyObject* name) {
    PyObject* found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    const char* text = PyUnicode_AsUTF8(name);
    if (!text || std::strncmp(text, "_saved_", 7) != 0) return nullptr;
    PyErr_Clear();
    return saved_attribute(self, text + 7);
}
PyObject* node_dir(PyObject* self, PyObject*) {
    RL_TRY
    Object type(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(self))));
    Object names(check(PyObject_Dir(type.get())));
    node_of(self).saved([&](const std::string& field, const SavedTensor&) {
        Object name(check(PyUnicode_FromFormat("_saved_%s", field.c_str())));
        if (PyList_Append(names.get(), name.get()) < 0) throw PythonFailure();
    });
    return names.release();
    RL_CATCH
}
static PyObject* add_node_hook(PyObject* self, PyObject* callable, bool pre) {
    RL_TRY
    RL_CHECK(PyCallable_Check(callable), throw_type, "%s(fn): must be callable, not %s",
             pre ? "register_prehook" : "register_hook", Py_TYPE(callable)->tp_name);
    auto hook = make_hook(callable, true);
    Ref<Node> node = Ref<Node>::share(&node_of(self));
    auto& list = pre ? node->hooks().pre : node->hooks().post;
    add_hook(list, hook);
    return make_handle(hook, [node, hook = hook.get(), pre] {
        take_hook(pre ? node->hooks().pre : node->hooks().post, hook);
    });
    RL_CATCH
}
PyObject* node_register_hook(PyObject* self, PyObject* callable) {
    return add_node_hook(self, callable, false);
}
PyObject* node_register_prehook(PyObject* self, PyObject* callable) {
    return add_node_hook(self, callable, true);
}

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "Return the name of the recorded operator."},
    {"_sequence_nr", node_sequence, METH_NOARGS,
     "Return the sequence number of the node. Nodes that are recorded later have larger numbers."},
    {"__dir__", node_dir, METH_NOARGS, nullptr},
    {"register_hook", node_register_hook, METH_O,
     "Register a hook that is called as fn(grad_inputs, grad_outputs) after the node has run."},
    {"register_prehook", node_register_prehook, METH_O,
     "Register a hook that is called as fn(grad_outputs) before the node runs."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef node_properties[] = {
    {"next_functions", node_next_functions, nullptr,
     "The nodes that receive the gradients, as pairs (node, index of the node's result).", nullptr},
    {"metadata", node_metadata, nullptr, "A dict for user data.", nullptr},
    {"site", node_site, nullptr,
     "The line that recorded the node, as \"file:line\"; None if it is not known.", nullptr},
    {"variable", node_variable, nullptr,
     "The leaf tensor to whose `grad` this node, an AccumulateGrad node, adds the gradient.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* wrap_node(const Ref<Node>& node) {
    if (!node) Py_RETURN_NONE;
    if (void* own = node->python_object()) return Py_NewRef(static_cast<PyObject*>(own));
    return hold_node(node);
}

Node* function_node_or_null(PyObject* o);  // function.cpp

Node* unwrap_node(PyObject* o) {
    if (PyObject_TypeCheck(o, NodeType)) return reinterpret_cast<PyNode*>(o)->node.get();
    return function_node_or_null(o);
}

// Creates an object that keeps the node alive. The object that `wrap_node` returns may be the context of a Function,
// which does not keep the node alive.
PyObject* hold_node(const Ref<Node>& node) {
    auto* self = PyObject_New(PyNode, class_named(node->name()));
    if (!self) throw PythonFailure();
    new (&self->node) Ref<Node>(node);
    return reinterpret_cast<PyObject*>(self);
}

int add_nodes(PyObject* module) {
    static PyType_Slot slots[] = {{Py_tp_dealloc, (void*)dealloc},       {Py_tp_repr, (void*)repr},
                                  {Py_tp_richcompare, (void*)compare},   {Py_tp_hash, (void*)hash},
                                  {Py_tp_getattro, (void*)node_getattr}, {Py_tp_methods, node_methods},
                                  {Py_tp_getset, node_properties},       {0, nullptr}};
    static PyType_Spec spec{"rushlight_autograd.Node", sizeof(PyNode), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            slots};
    NodeType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!NodeType) return -1;
    return PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(NodeType));
}

}  // namespace rushlight::autograd::python
