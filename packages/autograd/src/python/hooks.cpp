// Python callables as hooks, and the handles that remove them.
#include "python.h"

namespace rushlight::autograd::python {
namespace {

std::vector<Tensor> replacements(PyObject* result, size_t n, const char* who) {
    RL_CHECK(PyTuple_Check(result) || PyList_Check(result), throw_type,
             "%s: a hook must return None or a tuple of %zu gradients, not %s", who, n,
             Py_TYPE(result)->tp_name);
    RL_CHECK(PySequence_Fast_GET_SIZE(result) == static_cast<Py_ssize_t>(n), throw_runtime,
             "%s: a hook must return %zu gradients, but it returned %zd", who, n,
             PySequence_Fast_GET_SIZE(result));
    return require_tensors(result, who, "result of a hook");
}

void replace(Tensor& grad, const Tensor& by, const char* who) {
    if (by.defined() && grad.defined()) {
        RL_CHECK(std::equal(by.sizes().begin(), by.sizes().end(), grad.sizes().begin(), grad.sizes().end()),
                 throw_runtime,
                 "%s: a hook returned a gradient of shape %s, but the gradient had shape %s before\n"
                 "hint: return None to leave the gradient unchanged",
                 who, to_string(by.sizes()).c_str(), to_string(grad.sizes()).c_str());
        RL_CHECK(by.dtype() == grad.dtype() && by.device() == grad.device(), throw_runtime,
                 "%s: a hook returned a gradient of dtype %s on device %s, but the gradient had dtype %s on "
                 "device %s before\n"
                 "hint: convert the result of the hook with to()",
                 who, name(by.dtype()), name(by.device()).c_str(), name(grad.dtype()),
                 name(grad.device()).c_str());
    }
    grad = by;
}

class PythonHook final : public Hook {
  public:
    PythonHook(PyObject* callable, bool many) : callable_(Py_NewRef(callable)), many_(many) {}
    ~PythonHook() override {
        if (!Py_IsInitialized()) return;
        WithGil gil;
        Py_DECREF(callable_);
    }
    void* object() const override { return callable_; }

    void call(std::span<Tensor> gradients, std::span<const Tensor> given) override {
        WithGil gil;
        if (!many_) {
            if (!gradients[0].defined()) return;
            Object argument(check(wrap(gradients[0])));
            Object result(check(PyObject_CallOneArg(callable_, argument.get())));
            if (result.get() == Py_None) return;
            replace(gradients[0], require_tensor(result.get(), "register_hook", "result of the hook"),
                    "register_hook");
            return;
        }
        Object first(tuple(gradients));
        Object result;
        if (given.empty()) {
            result = Object(check(PyObject_CallOneArg(callable_, first.get())));
        } else {
            Object second(tuple(given));
            result =
                Object(check(PyObject_CallFunctionObjArgs(callable_, first.get(), second.get(), nullptr)));
        }
        if (result.get() == Py_None) return;
        auto list = replacements(result.get(), gradients.size(), "register_hook");
        for (size_t i = 0; i < list.size(); ++i) replace(gradients[i], list[i], "register_hook");
    }

  private:
    static PyObject* tuple(std::span<const Tensor> tensors) {
        Object t(check(PyTuple_New(static_cast<Py_ssize_t>(tensors.size()))));
        for (size_t i = 0; i < tensors.size(); ++i)
            PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), check(wrap(tensors[i])));
        return t.release();
    }
    PyObject* callable_;
    bool many_;
};

struct PyHandle {
    PyObject_HEAD std::weak_ptr<Hook> hook;
    std::function<void()> remove;
};
PyTypeObject* HandleType = nullptr;

PyHandle* handle_of(PyObject* self) { return reinterpret_cast<PyHandle*>(self); }
void handle_dealloc(PyObject* self) {
    handle_of(self)->hook.~weak_ptr();
    handle_of(self)->remove.~function();
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
PyObject* handle_remove(PyObject* self, PyObject*) {
    if (!handle_of(self)->hook.expired() && handle_of(self)->remove) handle_of(self)->remove();
    handle_of(self)->remove = nullptr;
    Py_RETURN_NONE;
}
PyObject* handle_enter(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* handle_exit(PyObject* self, PyObject*) { return handle_remove(self, nullptr); }
PyMethodDef handle_methods[] = {{"remove", handle_remove, METH_NOARGS, "Remove the hook."},
                                {"__enter__", handle_enter, METH_NOARGS, nullptr},
                                {"__exit__", handle_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::shared_ptr<Hook> make_hook(PyObject* callable, bool many) {
    return std::make_shared<PythonHook>(callable, many);
}

PyObject* make_handle(std::weak_ptr<Hook> hook, std::function<void()> remove) {
    auto* self = check(reinterpret_cast<PyObject*>(PyObject_New(PyHandle, HandleType)));
    new (&handle_of(self)->hook) std::weak_ptr<Hook>(std::move(hook));
    new (&handle_of(self)->remove) std::function<void()>(std::move(remove));
    return self;
}

int add_hooks(PyObject* module) {
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, (void*)handle_dealloc}, {Py_tp_methods, handle_methods}, {0, nullptr}};
    static PyType_Spec spec{"rushlight_autograd.RemovableHandle", sizeof(PyHandle), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    HandleType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!HandleType) return -1;
    return PyModule_AddObjectRef(module, "RemovableHandle", reinterpret_cast<PyObject*>(HandleType));
}

}  // namespace rushlight::autograd::python
