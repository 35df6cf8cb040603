// Methods that autograd adds to core's Tensor type: backward, grad_fn, hooks.
#include "python.h"

#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/transform.h"

namespace rushlight::autograd::python {
namespace {

Tensor self_of(PyObject* self) { return Tensor::share(unwrap(self)); }
// Returns the tensor that has the history: for a batched tensor, its value.
Tensor tensor_with_history(PyObject* self) { return physical(self_of(self)); }

// Returns whether the __torch_function__ of the tensor's class has handled the use of a member of Tensor.
bool answered(const char* name, const char* part, PyObject* self, PyObject* args, PyObject* kwargs,
              PyObject*& answer) {
    if (Py_TYPE(self) == static_cast<PyTypeObject*>(core->tensor_type)) [[likely]]
        return false;
    answer = static_cast<PyObject*>(core->answer_by_class(name, part, self, args, kwargs));
    if (!answer && PyErr_Occurred()) throw PythonFailure();
    return answer;
}

// Like answered() above, for a method that receives its arguments by vectorcall.
bool answered(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
              PyObject*& answer) {
    if (Py_TYPE(self) == static_cast<PyTypeObject*>(core->tensor_type)) [[likely]]
        return false;
    Object positional(check(PyTuple_New(nargs))), keywords(check(PyDict_New()));
    for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]) < 0)
            throw PythonFailure();
    return answered(name, nullptr, self, positional.get(), keywords.get(), answer);
}

// backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)
PyObject* method_backward(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_TRY
    PyObject* answer = nullptr;
    if (answered("backward", self, args, nargs, kwnames, answer)) return answer;
    static const char* const names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    PyObject* given[4] = {};
    RL_CHECK(nargs <= 4, throw_type, "backward() takes at most 4 arguments, got %zd", nargs);
    std::copy_n(args, nargs, given);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
        PyObject* key = PyTuple_GET_ITEM(kwnames, k);
        int i = 0;
        while (i < 4 && PyUnicode_CompareWithASCIIString(key, names[i]) != 0) ++i;
        RL_CHECK(i < 4, throw_type, "backward() got an unexpected keyword argument '%s'",
                 PyUnicode_AsUTF8(key));
        RL_CHECK(!given[i], throw_type, "backward() got two values for argument '%s'", names[i]);
        given[i] = args[nargs + k];
    }
    auto truth = [](PyObject* o) { return o && o != Py_None && PyObject_IsTrue(o) == 1; };
    BackwardOptions options;
    options.create_graph = truth(given[2]);
    options.retain_graph = given[1] && given[1] != Py_None ? truth(given[1]) : options.create_graph;
    Tensor output = self_of(self), gradient;
    if (given[0] && given[0] != Py_None) gradient = require_tensor(given[0], "backward", "gradient");
    std::vector<Tensor> inputs;
    if (given[3] && given[3] != Py_None) {
        if (!names_tensors(given[3])) {
            std::vector<Edge> edges = require_edges(given[3], "backward", "inputs");
            std::vector<Root> roots{root_of(output, std::move(gradient), 0)};
            WithoutGil nogil;
            run_backward(roots, edges, options);
            Py_RETURN_NONE;
        }
        inputs = require_tensors(given[3], "backward", "inputs");
        RL_CHECK(!inputs.empty(), throw_runtime, "backward(): inputs= must not be empty");
    }
    {
        WithoutGil nogil;
        run_batched_backward(TensorList(&output, 1),
                             gradient.defined() ? TensorList(&gradient, 1) : TensorList(), inputs, options);
        gradient = Tensor();
    }
    warn_of_growth();
    Py_RETURN_NONE;
    RL_CATCH
}

// Returns the only argument, which is passed by position or by name.
PyObject* hook_of(const char* format, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"hook", nullptr};
    PyObject* hook;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &hook))
        throw PythonFailure();
    return hook;
}

PyObject* method_register_hook(PyObject* self, PyObject* args, PyObject* kwargs) {
    RL_TRY
    PyObject* answer = nullptr;
    if (answered("register_hook", nullptr, self, args, kwargs, answer)) return answer;
    PyObject* callable = hook_of("O:register_hook", args, kwargs);
    RL_CHECK(PyCallable_Check(callable), throw_type, "register_hook(hook): must be callable, not %s",
             Py_TYPE(callable)->tp_name);
    Tensor t = self_of(self);
    RL_CHECK(
        t.requires_grad(), throw_runtime,
        "register_hook(): this tensor does not require grad\nhint: call requires_grad_() on the tensor first");
    auto hook = make_hook(callable, false);
    if (Ref<Node> node = grad_fn(t)) {
        add_hook(node->hooks().tensor_hooks, std::pair(meta(t.impl()).index, hook));
        return make_handle(hook, [node, hook = hook.get()] { take_hook(node->hooks().tensor_hooks, hook); });
    }
    add_hook(meta(t.impl()).hooks.get().pre, hook);
    if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);  // the hook may refer to the tensor
    // The handle does not keep the tensor alive, because the hook does not exist longer than the tensor.
    return make_handle(hook,
                       [impl = t.impl(), hook = hook.get()] { take_hook(meta(impl).hooks.get().pre, hook); });
    RL_CATCH
}

PyObject* method_register_post_accumulate_grad_hook(PyObject* self, PyObject* args, PyObject* kwargs) {
    RL_TRY
    PyObject* answer = nullptr;
    if (answered("register_post_accumulate_grad_hook", nullptr, self, args, kwargs, answer)) return answer;
    PyObject* callable = hook_of("O:register_post_accumulate_grad_hook", args, kwargs);
    RL_CHECK(PyCallable_Check(callable), throw_type,
             "register_post_accumulate_grad_hook(hook): must be callable, not %s",
             Py_TYPE(callable)->tp_name);
    Tensor t = self_of(self);
    RL_CHECK(t.requires_grad() && t.is_leaf(), throw_runtime,
             "register_post_accumulate_grad_hook(): the tensor must be a leaf that requires grad");
    auto hook = make_hook(callable, false);
    add_hook(meta(t.impl()).hooks.get().post_accumulate, hook);
    if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    return make_handle(hook, [impl = t.impl(), hook = hook.get()] {
        take_hook(meta(impl).hooks.get().post_accumulate, hook);
    });
    RL_CATCH
}

PyObject* method_retain_grad(PyObject* self, PyObject*) {
    RL_TRY
    PyObject* answer = nullptr;
    if (answered("retain_grad", nullptr, self, nullptr, nullptr, answer)) return answer;
    autograd::retain_grad(self_of(self));
    Py_RETURN_NONE;
    RL_CATCH
}

PyObject* get_grad_fn(PyObject* self, void*) {
    RL_TRY
    PyObject* answer = nullptr;
    if (answered("grad_fn", "__get__", self, nullptr, nullptr, answer)) return answer;
    return check(wrap_node(grad_fn(tensor_with_history(self))));
    RL_CATCH
}
PyObject* get_output_nr(PyObject* self, void*) {
    RL_TRY
    PyObject* answer = nullptr;
    if (answered("output_nr", "__get__", self, nullptr, nullptr, answer)) return answer;
    Meta* m = meta_or_null(unwrap(self));
    return PyLong_FromUnsignedLong(m ? m->index : 0);
    RL_CATCH
}
PyObject* get_retains_grad(PyObject* self, void*) {
    RL_TRY
    PyObject* answer = nullptr;
    if (answered("retains_grad", "__get__", self, nullptr, nullptr, answer)) return answer;
    Meta* m = meta_or_null(unwrap(self));
    return PyBool_FromLong(m && m->retains_grad());
    RL_CATCH
}

// Forward mode.
Level level_of(PyObject* o) {
    const Level level = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) throw PythonFailure();
    return level;
}

PyObject* enter_forward(PyObject*, PyObject*) {
    RL_TRY return PyLong_FromUnsignedLongLong(enter_forward_mode());
    RL_CATCH
}

PyObject* leave_forward(PyObject*, PyObject* level) {
    RL_TRY leave_forward_mode(level_of(level));
    Py_RETURN_NONE;
    RL_CATCH
}

// _make_dual(tensor, tangent, level): returns a view of the tensor with the tangent.
PyObject* make_dual(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 3, throw_type, "_make_dual takes 3 arguments");
    return check(
        wrap(autograd::make_dual(require_tensor(args[0], "make_dual", "tensor"),
                                 require_tensor(args[1], "make_dual", "tangent"), level_of(args[2]))));
    RL_CATCH
}

// _attach_tangent(tensor, tangent, level): attaches the tangent to the tensor itself, and to aliases that nodes have saved.
PyObject* attach_tangent(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 3, throw_type, "_attach_tangent takes 3 arguments");
    autograd::attach_tangent(require_tensor(args[0], "_attach_tangent", "tensor"),
                             require_tensor(args[1], "_attach_tangent", "tangent"), level_of(args[2]));
    Py_RETURN_NONE;
    RL_CATCH
}

// _unpack_dual(tensor, level): returns a view of the tensor that has only the tangents of outer levels, and the
// tangent or None.
PyObject* unpack_dual(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 2, throw_type, "_unpack_dual takes 2 arguments");
    auto [primal, given] =
        autograd::unpack_dual(require_tensor(args[0], "unpack_dual", "tensor"), level_of(args[1]));
    Object first(check(wrap(primal))), second(check(wrap(given)));
    return check(PyTuple_Pack(2, first.get(), second.get()));
    RL_CATCH
}

PyMethodDef methods[] = {
    {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method_backward)),
     METH_FASTCALL | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Compute the gradients of this tensor with respect to the graph leaves, or to `inputs`, and add them to their `grad`.\n"
     "gradient: the gradient of this tensor, with the same shape; optional for a tensor of one element.\n"
     "Raises RuntimeError if an earlier backward() has freed the graph."},
    {"register_hook", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method_register_hook)),
     METH_VARARGS | METH_KEYWORDS,
     "register_hook($self, hook)\n--\n\n"
     "Register a hook that is called as hook(grad) when the gradient of this tensor has been computed.\n"
     "If the hook returns a Tensor, it replaces the gradient."},
    {"register_post_accumulate_grad_hook",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method_register_post_accumulate_grad_hook)),
     METH_VARARGS | METH_KEYWORDS,
     "register_post_accumulate_grad_hook($self, hook)\n--\n\n"
     "Register a hook that is called as hook(tensor) after a gradient has been added to `tensor.grad`."},
    {"retain_grad", method_retain_grad, METH_NOARGS,
     "retain_grad($self)\n--\n\n"
     "Make backward() store the gradient of this tensor in `grad`, even if the tensor is not a leaf.\n"
     "The gradient is stored after all hooks of the tensor have run."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"grad_fn", get_grad_fn, nullptr, "The node that computed this tensor, or None.", nullptr},
    {"output_nr", get_output_nr, nullptr,
     "The index of this tensor among the results of the operator that grad_fn belongs to.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Whether retain_grad() was called.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef functions[] = {
    {"_enter_forward_mode", enter_forward, METH_NOARGS, nullptr},
    {"_leave_forward_mode", leave_forward, METH_O, nullptr},
    {"_make_dual", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_dual)), METH_FASTCALL,
     nullptr},
    {"_attach_tangent", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(attach_tangent)),
     METH_FASTCALL, nullptr},
    {"_unpack_dual", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(unpack_dual)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_tensor_methods(PyObject* module) {
    auto* type = static_cast<PyTypeObject*>(core->tensor_type);
    auto* object = reinterpret_cast<PyObject*>(type);
    for (PyMethodDef* m = methods; m->ml_name; ++m) {
        Object descriptor(PyDescr_NewMethod(type, m));
        if (!descriptor || PyObject_SetAttrString(object, m->ml_name, descriptor.get()) < 0) return -1;
    }
    for (PyGetSetDef* p = properties; p->name; ++p) {
        Object descriptor(PyDescr_NewGetSet(type, p));
        if (!descriptor || PyObject_SetAttrString(object, p->name, descriptor.get()) < 0) return -1;
    }
    return PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::autograd::python
