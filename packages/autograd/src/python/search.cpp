// Finds the references in graphs that keep a tensor or a node alive. The other part of this search is in
// rushlight_autograd/_alive.py.
#include <unordered_set>

#include "python.h"
#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/saved.h"
#include "rushlight/dispatch.h"

namespace rushlight::autograd::python {
namespace {

// A list of findings: tuples (kind, index of the root from which it was reached, node or None, text).
class Findings {
  public:
    Findings() : list_(check(PyList_New(0))) {}
    void add(const char* kind, Py_ssize_t root, const Ref<Node>& node, const std::string& text) {
        Object shown(check(wrap_node(node)));
        Object entry(check(Py_BuildValue("(snOs)", kind, root, shown.get(), text.c_str())));
        if (PyList_Append(list_.get(), entry.get()) < 0) throw PythonFailure();
    }
    PyObject* release() { return list_.release(); }

  private:
    Object list_;
};

// Adds a finding if a root tensor refers to the target or shares its memory.
void compare(Findings& found, Py_ssize_t root, const TensorImpl* held, const TensorImpl* target) {
    if (held == target) return;
    if (held->grad() == target) found.add("grad", root, nullptr, "");
    else if (held->root() == target) found.add("view", root, nullptr, "");
    else if (held->storage() == target->storage()) found.add("memory", root, nullptr, "");
}

// _search_graph(roots, target): finds the references to the target, a tensor or a node, in the graphs of tensors and nodes.
// Kinds are "saved" (the text is the name under which it is saved), "leaf" and "edge", and for a root itself "grad",
// "view" and "memory".
PyObject* search_graph(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 2 && PyList_Check(args[0]), throw_type, "_search_graph(roots, target)");
    TensorImpl* tensor = unwrap(args[1]);
    Node* wanted = tensor ? nullptr : unwrap_node(args[1]);
    Findings found;
    std::unordered_set<Node*> seen;
    for (Py_ssize_t root = 0; root < PyList_GET_SIZE(args[0]); ++root) {
        PyObject* item = PyList_GET_ITEM(args[0], root);
        std::vector<Ref<Node>> todo;
        if (TensorImpl* impl = unwrap(item)) {
            if (tensor) compare(found, root, impl, tensor);
            for (Tensor t = Tensor::share(impl); t.defined(); t = t.grad())
                if (const Meta* m = meta_or_null(t.impl()); m && m->grad_fn) todo.push_back(m->grad_fn);
        } else if (Node* node = unwrap_node(item)) {
            todo.push_back(Ref<Node>::share(node));
        }
        while (!todo.empty()) {
            Ref<Node> node = std::move(todo.back());
            todo.pop_back();
            if (!seen.insert(node.get()).second) continue;
            bool edge_found = false;
            for (Edge& edge : node->edges()) {
                if (!edge) continue;
                edge_found |= edge.node.get() == wanted;
                todo.push_back(edge.node);
            }
            if (edge_found) found.add("edge", root, node, "");
            if (!tensor) continue;
            node->saved([&](const std::string& name, const SavedTensor& saved) {
                const Tensor& kept = saved.kept();
                if (kept.defined() && kept.impl()->storage() == tensor->storage())
                    found.add("saved", root, node, name);
            });
            if (auto* leaf = dynamic_cast<AccumulateGrad*>(node.get());
                leaf && leaf->variable().impl() == tensor)
                found.add("leaf", root, node, "");
        }
    }
    return found.release();
    RL_CATCH
}

// _gradient_edge(tensor) -> (node, index of the node's result, object that keeps the node alive)
PyObject* gradient_edge_of(PyObject*, PyObject* o) {
    RL_TRY
    Tensor t = require_tensor(o, "get_gradient_edge", "tensor");
    RL_CHECK(needs_grad(t), throw_runtime,
             "get_gradient_edge(tensor): the tensor of shape %s does not require grad",
             to_string(t.sizes()).c_str());
    Edge edge = gradient_edge(t);
    Object node(check(wrap_node(edge.node))), token(check(hold_node(edge.node)));
    return Py_BuildValue("(OIO)", node.get(), edge.index, token.get());
    RL_CATCH
}

// _saved_of(node) -> list of (name, tensor) for the saved tensors, without history; None in place of a tensor that a
// hook has packed.
PyObject* saved_of(PyObject*, PyObject* o) {
    RL_TRY
    Node* node = unwrap_node(o);
    RL_CHECK(node, throw_type, "_saved_of(node): must be a node, not %s", Py_TYPE(o)->tp_name);
    Object list(check(PyList_New(0)));
    node->saved([&](const std::string& name, const SavedTensor& saved) {
        Tensor shown = saved.kept().defined() ? make_alias(saved.kept()) : Tensor();
        Object tensor(check(wrap(shown)));
        Object entry(check(Py_BuildValue("(sO)", name.c_str(), tensor.get())));
        if (PyList_Append(list.get(), entry.get()) < 0) throw PythonFailure();
    });
    return list.release();
    RL_CATCH
}

PyObject* pass_id(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(current_pass_id()); }
PyObject* pass_runs(PyObject*, PyObject* o) {
    Node* node = unwrap_node(o);
    return PyBool_FromLong(node && current_pass_runs(node));
}

PyObject* increment_version(PyObject*, PyObject* o) {
    RL_TRY
    Tensor t = require_tensor(o, "increment_version", "tensor");
    if (!t.impl()->has(Flag::Inference)) begin_write("increment_version", t);
    Py_RETURN_NONE;
    RL_CATCH
}

PyMethodDef functions[] = {
    {"_search_graph", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(search_graph)),
     METH_FASTCALL, nullptr},
    {"_gradient_edge", gradient_edge_of, METH_O, nullptr},
    {"_saved_of", saved_of, METH_O, nullptr},
    {"_pass_id", pass_id, METH_NOARGS, nullptr},
    {"_pass_runs", pass_runs, METH_O, nullptr},
    {"_increment_version", increment_version, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_search(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::autograd::python
