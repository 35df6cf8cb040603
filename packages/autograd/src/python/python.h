// Helpers for the Python bindings of autograd: access to core's objects through its capsule, errors, and the GIL.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rushlight/autograd/variable.h"
#include "rushlight/python.h"

namespace rushlight::autograd::python {

extern const PythonApi* core;

inline PyObject* wrap(const Tensor& t) { return static_cast<PyObject*>(core->wrap(t.impl())); }
/// Returns null if the object is not a Tensor.
inline TensorImpl* unwrap(PyObject* o) { return core->unwrap(o); }
/// If the object is not a Tensor, raises a TypeError that names the function and the argument.
Tensor require_tensor(PyObject* o, const char* function, const char* argument);
/// Converts a sequence of Tensors; None becomes an undefined tensor. Raises TypeError for other objects.
std::vector<Tensor> require_tensors(PyObject* o, const char* function, const char* argument);
/// Returns the edge that a GradientEdge refers to; a null edge for any other object.
Edge edge_or_null(PyObject* o);
/// Whether the object is a Tensor or a sequence of Tensors.
bool names_tensors(PyObject* o);
/// Returns the edges at which the gradients of tensors and GradientEdges arrive.
std::vector<Edge> require_edges(PyObject* o, const char* function, const char* argument);
/// Issues the pending warning of a growing graph, if there is one. Returns -1 if the warning was raised as an error.
int warn_of_growth();

// See Note [Interpreter exit] in core's src/python/gil.h.
void sleep_if_interpreter_ends();

/// An owned reference.
class Object {
  public:
    Object() = default;
    explicit Object(PyObject* owned) : p_(owned) {}
    Object(Object&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    Object& operator=(Object&& other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~Object() {
        if (!p_) return;
        sleep_if_interpreter_ends();
        Py_DECREF(p_);
    }
    PyObject* get() const { return p_; }
    PyObject* release() { return std::exchange(p_, nullptr); }
    explicit operator bool() const { return p_; }

  private:
    PyObject* p_ = nullptr;
};

/// An exception that carries a Python error through the engine, which runs without the GIL.
class PythonFailure {
  public:
    /// Takes the Python error that is currently set. The caller must hold the GIL.
    PythonFailure();
    PythonFailure(const PythonFailure& other);
    ~PythonFailure();
    void restore();

  private:
    PyObject *type_, *value_, *traceback_;
};
/// If `o` is null, throws the Python error that is set.
inline PyObject* check(PyObject* o) {
    if (!o) throw PythonFailure();
    return o;
}

/// Sets the Python error for the current C++ exception and returns null. To be called in a catch block.
PyObject* translate();
#define RL_TRY try {
#define RL_CATCH                                           \
    }                                                      \
    catch (...) {                                          \
        return ::rushlight::autograd::python::translate(); \
    }

class WithGil {
  public:
    WithGil() : state_((sleep_if_interpreter_ends(), PyGILState_Ensure())) {}
    ~WithGil() {
        sleep_if_interpreter_ends();
        PyGILState_Release(state_);
    }

  private:
    PyGILState_STATE state_;
};
class WithoutGil {
  public:
    WithoutGil() : state_(PyEval_SaveThread()) {}
    ~WithoutGil() noexcept(false) {
        sleep_if_interpreter_ends();
        PyEval_RestoreThread(state_);
    }

  private:
    PyThreadState* state_;
};

/// Returns the Python object of a node: a Function's context, or a new Node object. Returns None for null.
PyObject* wrap_node(const Ref<Node>& node);
/// Returns an object that keeps the node alive. Unlike the context that `wrap_node` may return, it always owns the
/// node.
PyObject* hold_node(const Ref<Node>& node);
/// Returns null if the object is not a node.
Node* unwrap_node(PyObject* o);

/// Makes a hook of a Python callable. If `many` is true, the callable receives tuples of gradients, as hooks of nodes
/// do. Otherwise it receives one gradient.
std::shared_ptr<Hook> make_hook(PyObject* callable, bool many);
/// Add a hook to a list and remove it, under the lock: passes on other threads may be reading the list.
template <class List, class Entry>
void add_hook(List& list, Entry entry) {
    std::lock_guard lock(hooks_mutex());
    list.push_back(std::move(entry));
}
inline std::shared_ptr<Hook>& hook_of(std::shared_ptr<Hook>& entry) { return entry; }
inline std::shared_ptr<Hook>& hook_of(std::pair<uint32_t, std::shared_ptr<Hook>>& entry) {
    return entry.second;
}
template <class List>
void take_hook(List& list, const Hook* hook) {
    std::shared_ptr<Hook> taken;  // released after the lock, because its destructor may run Python code
    std::lock_guard lock(hooks_mutex());
    std::erase_if(list, [&](auto& entry) {
        if (hook_of(entry).get() != hook) return false;
        taken = std::move(hook_of(entry));
        return true;
    });
}
/// Makes a handle whose remove() method calls `remove`. `remove` may own the node of the hook, to keep it alive as
/// long as the handle exists.
PyObject* make_handle(std::weak_ptr<Hook> hook, std::function<void()> remove);

/// Thrown when a Python error is already set.
struct ErrorIsSet {};

int add_nodes(PyObject* module);
int add_search(PyObject* module);
int add_functions(PyObject* module);
int add_tensor_methods(PyObject* module);
int add_hooks(PyObject* module);
int add_modes(PyObject* module);
int add_transforms(PyObject* module);

}  // namespace rushlight::autograd::python
