#include "python/override.h"

#include <cstring>
#include <mutex>

#include "python/arguments.h"
#include "python/docstrings.h"
#include "python/values.h"
#include "rushlight/ops/expand.h"

namespace rushlight::python {
namespace {

PyObject* disabled_function = nullptr;  // _C._disabled_torch_function_impl

// The functions that run without overrides on this thread, the innermost first.
struct ActiveCall {
    PyObject* func;
    const ActiveCall* before;
};
thread_local const ActiveCall* active_call = nullptr;
struct RestoreActiveCall {
    const ActiveCall* former;
    ~RestoreActiveCall() { active_call = former; }
};

// cls.__torch_function__(func, types, args=(), kwargs=None)
struct OverrideCall {
    PyObject *func, *types, *args = nullptr, *kwargs = nullptr;

    bool read(PyObject* given, PyObject* keywords) {
        static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
        return PyArg_ParseTupleAndKeywords(given, keywords, "OO|OO:__torch_function__",
                                           const_cast<char**>(names), &func, &types, &args, &kwargs);
    }
    // Calls the function itself, without overrides. A function of another library does not check that overrides are
    // disabled, so it would call the override again.
    Object run() const {
        for (const ActiveCall* r = active_call; r; r = r->before)
            RL_CHECK(r->func != func, throw_type, "%s", foreign().c_str());
        const ActiveCall here{func, active_call};
        const RestoreActiveCall restore{active_call};
        active_call = &here;
        StagesOff off(bit(Stage::Python));
        Object positional = args ? Object::steal(PySequence_Tuple(args)) : Object::steal(PyTuple_New(0));
        return Object::steal(PyObject_Call(func, positional.get(), kwargs == Py_None ? nullptr : kwargs));
    }
    std::string foreign() const {
        Object name = Object::steal(PyObject_GetAttrString(func, "__name__"));
        return std::string(PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : "this function") +
               ": a function of another library was called with a tensor of rushlight\n"
               "hint: convert the tensor first, for example with numpy() or that library's from_dlpack";
    }
};

// Whether a property is returned without conversion: a gradient has its own class, and the base of a view is another
// object.
bool keeps_its_class(const char* property) {
    for (const char* name : {"grad", "_grad", "_base"})
        if (std::strcmp(property, name) == 0) return true;
    return false;
}

// Whether the function is the `__get__` of such a property.
bool gets_what_keeps_its_class(PyObject* func) {
    if (Py_TYPE(func) != &_PyMethodWrapper_Type) return false;
    Object descriptor = Object::steal(PyObject_GetAttrString(func, "__self__"));
    if (Py_TYPE(descriptor.get()) != &PyGetSetDescr_Type) return false;
    return keeps_its_class(PyUnicode_AsUTF8(PyDescr_NAME(descriptor.get())));
}

// Converts the tensors in a result to objects of a class.
Object convert(Object result, PyTypeObject* type) {
    PyObject* o = result.get();
    if (is_tensor(o)) {
        if (PyObject_TypeCheck(o, type)) return result;
        auto* wrapper = reinterpret_cast<PyTensor*>(o);
        if (Py_REFCNT(o) > 1 || wrapper->dict || wrapper->weakrefs)
            return Object::steal(as_subclass(o, type));
        Tensor t = wrapper->tensor;
        // There are no other references, so the tensor can get an object of the class instead.
        result = Object();
        return Object::steal(wrap_as(type, std::move(t)));
    }
    if (!PyTuple_Check(o) && !PyList_Check(o)) return result;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    Object items = Object::steal(PyList_New(n));
    bool changed = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, i);
        Object converted = convert(Object::borrow(item), type);
        changed |= converted.get() != item;
        PyList_SET_ITEM(items.get(), i, converted.release());
    }
    if (!changed) return result;
    auto* made = reinterpret_cast<PyObject*>(Py_TYPE(o));
    // A named tuple takes its fields as separate arguments.
    if (PyObject_HasAttrString(made, "_make"))
        return Object::steal(PyObject_CallMethod(made, "_make", "O", items.get()));
    return Object::steal(PyObject_CallOneArg(made, items.get()));
}

// Tensor.__torch_function__: the method that subclasses inherit and call through super().
PyObject* default_override(PyObject* cls, PyObject* given, PyObject* keywords) {
    OverrideCall call;
    if (!call.read(given, keywords)) return nullptr;
    RL_PY_TRY
    Object types = Object::steal(PySequence_Tuple(call.types));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types.get()); ++i) {
        int known = PyObject_IsSubclass(cls, PyTuple_GET_ITEM(types.get(), i));
        if (known < 0) return nullptr;
        if (!known) Py_RETURN_NOTIMPLEMENTED;
    }
    Object result = call.run();
    if (gets_what_keeps_its_class(call.func)) return result.release();
    return convert(std::move(result), reinterpret_cast<PyTypeObject*>(cls)).release();
    RL_PY_CATCH
}

PyObject* disabled_override(PyObject*, PyObject* given, PyObject* keywords) {
    OverrideCall call;
    if (!call.read(given, keywords)) return nullptr;
    RL_PY_TRY return call.run().release();
    RL_PY_CATCH
}

bool inherits_default(PyTypeObject* type) {
    Object method =
        Object::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__torch_function__"));
    return PyCFunction_Check(method.get()) &&
           PyCFunction_GET_FUNCTION(method.get()) ==
               reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(default_override));
}

// The arguments whose classes override operators, one for each class. Subclasses come before their base classes;
// otherwise the order is from left to right.
class Overriding {
  public:
    void add(PyObject* o) {
        PyTypeObject* type = Py_TYPE(o);
        if (type == TensorType) return;
        size_t at = objects_.size();
        for (size_t i = 0; i < objects_.size(); ++i) {
            if (Py_TYPE(objects_[i].get()) == type) return;
            if (at == objects_.size() && PyType_IsSubtype(type, Py_TYPE(objects_[i].get()))) at = i;
        }
        if (!overrides_operators(type)) return;
        objects_.insert(objects_.begin() + static_cast<std::ptrdiff_t>(at), Object::borrow(o));
    }
    void add(const Tensor& t) {
        if (!t.defined()) return;
        if (auto* wrapper = static_cast<PyObject*>(t.impl()->wrapper())) add_wrapped(t, wrapper);
    }
    void add(const Value& v) {
        if (auto* t = v.as<Tensor>()) add(*t);
        if (auto* list = v.as<std::vector<Tensor>>())
            for (const Tensor& t : *list) add(t);
    }
    bool empty() const { return objects_.empty(); }
    PyTypeObject* first() const { return Py_TYPE(objects_[0].get()); }
    bool all_default() const {
        for (const Object& o : objects_)
            if (!inherits_default(Py_TYPE(o.get())) || !PyType_IsSubtype(first(), Py_TYPE(o.get())))
                return false;
        return true;
    }
    Object list() const {
        Object list = Object::steal(PyList_New(static_cast<Py_ssize_t>(objects_.size())));
        for (size_t i = 0; i < objects_.size(); ++i)
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(objects_[i].get()));
        return list;
    }

  private:
    void add_wrapped(const Tensor& t, PyObject* wrapper) {
        if (Py_TYPE(wrapper) == TensorType) return;
        add(Object::steal(wrap(t)).get());  // wrap() makes an owned wrapper an ordinary object
    }
    std::vector<Object> objects_;
};

// Converts the result of an override to the operator's results. Throws Overridden if the result has other types.
void accept_result(const Operator& op, Object result, Stack& stack) {
    SchemaText schema(op);
    stack.clear();
    PyObject* o = result.get();
    size_t n = schema.returns.size();
    bool fits = true;
    if (n == 1) {
        fits = to_value(o, schema.returns[0], stack.emplace_back());
    } else if (n > 1) {
        fits = PyTuple_Check(o) && PyTuple_GET_SIZE(o) == static_cast<Py_ssize_t>(n);
        for (size_t i = 0; fits && i < n; ++i)
            fits = to_value(PyTuple_GET_ITEM(o, static_cast<Py_ssize_t>(i)), schema.returns[i],
                            stack.emplace_back());
    }
    if (!fits) throw Overridden{result.release()};
}

// Wraps results that have no Python object yet in objects of the class.
void retype_results(Stack& stack, PyTypeObject* type) {
    auto retype = [&](const Tensor& t) {
        if (t.defined() && !t.impl()->wrapper()) Object::steal(wrap_as(type, t));
    };
    for (const Value& v : stack) {
        if (auto* t = v.as<Tensor>()) retype(*t);
        if (auto* list = v.as<std::vector<Tensor>>())
            for (const Tensor& t : *list) retype(t);
    }
}

void python_stage(const Operator& op, StageMask rest, Stack& stack) {
    WithGil gil;
    Overriding overriding;
    for (const Value& v : stack) overriding.add(v);
    if (overriding.empty()) return op.boxed(op, rest, stack);  // for example a plain view of such a tensor
    if (overriding.all_default()) {
        StagesOff off(bit(Stage::Python));
        op.boxed(op, rest, stack);
        return retype_results(stack, overriding.first());
    }
    Object values = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(stack.size())));
    for (size_t i = 0; i < stack.size(); ++i)
        PyTuple_SET_ITEM(values.get(), static_cast<Py_ssize_t>(i), to_python(stack[i]).release());
    static constinit Lookup call_operator_override{"rushlight_core.overrides", "_call_operator"};
    Object result = Object::steal(PyObject_CallFunction(call_operator_override.get(), "ssOO", op.name,
                                                        op.schema, overriding.list().get(), values.get()));
    accept_result(op, std::move(result), stack);
}

// with DisableTorchFunctionSubclass(): no override is called on this thread.
struct Disable {
    PyObject_HEAD StageMask former;
};
PyObject* disable_enter(PyObject* self, PyObject*) {
    reinterpret_cast<Disable*>(self)->former = dispatch_state.off & bit(Stage::Python);
    dispatch_state.off |= bit(Stage::Python);
    Py_RETURN_NONE;
}
PyObject* disable_exit(PyObject* self, PyObject*) {
    dispatch_state.off =
        (dispatch_state.off & ~bit(Stage::Python)) | reinterpret_cast<Disable*>(self)->former;
    Py_RETURN_NONE;
}

PyObject* method_as_subclass(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"cls", nullptr};
    PyObject* cls;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:as_subclass", const_cast<char**>(names), &cls))
        return nullptr;
    RL_PY_TRY
    RL_CHECK(PyType_Check(cls), throw_type, "as_subclass(cls): must be a type, not %s",
             Py_TYPE(cls)->tp_name);
    return as_subclass(self, reinterpret_cast<PyTypeObject*>(cls));
    RL_PY_CATCH
}

#define RL_KEYWORDS(f) \
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), METH_VARARGS | METH_KEYWORDS

PyObject* overrides_enabled(PyObject*, PyObject*) {
    return PyBool_FromLong(!(dispatch_state.off & bit(Stage::Python)));
}

PyMethodDef functions[] = {
    {"_overrides_enabled", overrides_enabled, METH_NOARGS, nullptr},
    {"_disabled_torch_function_impl", RL_KEYWORDS(disabled_override),
     "Disable __torch_function__ for a subclass: operators on its tensors return objects of class Tensor."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyMethodDef override_methods[] = {
    {"as_subclass", RL_KEYWORDS(method_as_subclass),
     "as_subclass($self, cls)\n--\n\nReturn the tensor as an object of a subclass of Tensor."},
    {"__torch_function__", RL_KEYWORDS(default_override) | METH_CLASS,
     "Call `func` without overrides, and convert the tensors that it returns to this class."},
    {nullptr, nullptr, 0, nullptr}};

bool overrides_operators(PyTypeObject* type) {
    if (type == TensorType) return false;
    Object method =
        Object::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__torch_function__"));
    if (method.get() == disabled_function) return false;
    static std::once_flag installed;
    std::call_once(installed, [] { install_fallback(Stage::Python, python_stage); });
    return true;
}

PyObject* call_override(const char* method, PyObject* const* args, Py_ssize_t count) {
    Overriding overriding;
    for (Py_ssize_t i = 0; i < count; ++i)
        if (is_tensor(args[i])) overriding.add(args[i]);
    if (overriding.empty()) return nullptr;
    Object func = Object::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), method));
    Object tuple = Object::steal(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
    static constinit Lookup call{"rushlight_core.overrides", "_call"};
    Object none = Object::steal(PyDict_New());
    return Object::steal(PyObject_CallFunctionObjArgs(call.get(), func.get(), overriding.list().get(),
                                                      tuple.get(), none.get(), nullptr))
        .release();
}

namespace {

// Calls the override in `overriding` for Tensor.<member>(self, *args, **kwargs). Returns null if there is none.
PyObject* answer_by(const Overriding& overriding, Member member, PyObject* args, PyObject* kwargs) {
    if (overriding.empty()) return nullptr;
    Object func = Object::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), member.name));
    if (member.part) func = Object::steal(PyObject_GetAttrString(func.get(), member.part));
    static constinit Lookup call{"rushlight_core.overrides", "_call"};
    return Object::steal(PyObject_CallFunctionObjArgs(call.get(), func.get(), overriding.list().get(), args,
                                                      kwargs, nullptr))
        .release();
}

bool overrides_are_off() { return dispatch_state.off & bit(Stage::Python); }

}  // namespace

PyObject* answer_by_class(Member member, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                          PyObject* kwnames) {
    if (overrides_are_off()) return nullptr;
    Overriding overriding;
    overriding.add(self);
    const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < nargs + named; ++i)
        if (is_tensor(args[i])) overriding.add(args[i]);
    Object positional = Object::steal(PyTuple_New(nargs + 1)), keywords = Object::steal(PyDict_New());
    PyTuple_SET_ITEM(positional.get(), 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i + 1, Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; k < named; ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]) < 0)
            throw PythonError();
    return answer_by(overriding, member, positional.get(), keywords.get());
}

PyObject* answer_by_class_to_call(Member member, PyObject* self, PyObject* args, PyObject* kwargs) {
    if (overrides_are_off()) return nullptr;
    Overriding overriding;
    overriding.add(self);
    Object first = Object::steal(PyTuple_Pack(1, self));
    Object positional = args ? Object::steal(PySequence_Concat(first.get(), args)) : first;
    Object keywords = kwargs ? Object::borrow(kwargs) : Object::steal(PyDict_New());
    return answer_by(overriding, member, positional.get(), keywords.get());
}

bool has_own_override(PyObject* self) {
    return has_override(self) && !overrides_are_off() && overrides_operators(Py_TYPE(self)) &&
           !inherits_default(Py_TYPE(self));
}

PyObject* get_by_class(const char* name, PyObject* self, getter get, void* closure) {
    if (overrides_are_off()) return get(self, closure);
    RL_PY_TRY
    if (overrides_operators(Py_TYPE(self)) && inherits_default(Py_TYPE(self))) {
        StagesOff off(bit(Stage::Python));
        Object value = Object::steal(get(self, closure));
        return keeps_its_class(name) ? value.release() : convert(std::move(value), Py_TYPE(self)).release();
    }
    if (PyObject* answer = answer_by_class({name, "__get__"}, self)) return answer;
    return get(self, closure);
    RL_PY_CATCH
}

void answer_by_other_class(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames) {
    auto answers = [](PyObject* o) {
        return !is_tensor(o) &&
               PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__torch_function__");
    };
    Object candidates = Object::steal(PyList_New(0));
    bool found = false;
    auto consider = [&](PyObject* o) {
        if (!is_tensor(o) && !answers(o)) return;
        found |= !is_tensor(o);
        if (PyList_Append(candidates.get(), o) < 0) throw PythonError();
    };
    Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (self) consider(self);
    for (Py_ssize_t i = 0; i < nargs + nkw; ++i) {
        consider(args[i]);
        if (PyList_Check(args[i]) || PyTuple_Check(args[i]))
            for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]); ++k)
                consider(PySequence_Fast_GET_ITEM(args[i], k));
    }
    if (!found) return;
    Py_ssize_t shift = self != nullptr;
    Object positional = Object::steal(PyTuple_New(nargs + shift));
    if (self) PyTuple_SET_ITEM(positional.get(), 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i + shift, Py_NewRef(args[i]));
    Object keywords = Object::steal(PyDict_New());
    for (Py_ssize_t k = 0; k < nkw; ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]) < 0)
            throw PythonError();
    static constinit Lookup call{"rushlight_core.overrides", "_call_by_name"};
    Object result = Object::steal(
        PyObject_CallFunction(call.get(), "sOOO", name, candidates.get(), positional.get(), keywords.get()));
    throw Overridden{result.release()};
}

PyObject* as_subclass(PyObject* o, PyTypeObject* type) {
    const Tensor& t = unwrap(o);
    RL_CHECK(PyType_IsSubtype(type, TensorType), throw_type,
             "as_subclass(cls): must be a subclass of Tensor, got %s", type->tp_name);
    StageMask mask = (t.impl()->stages() | dispatch_state.on) & ~dispatch_state.off & ~bit(Stage::Python);
    if (!mask) return wrap_as(type, make_alias(t));
    StagesOff off(bit(Stage::Python));
    return wrap_as(type, ops::expand(t, t.sizes()));
}

int add_override(PyObject* module) {
    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    disabled_function = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
    if (!disabled_function) return -1;
    static PyMethodDef methods[] = {{"__enter__", disable_enter, METH_NOARGS, nullptr},
                                    {"__exit__", disable_exit, METH_VARARGS, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_methods, methods},
                                  {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
                                  {Py_tp_doc, const_cast<char*>(docstrings::DisableTorchFunctionSubclass_)},
                                  {0, nullptr}};
    static PyType_Spec spec{"rushlight_core._C.DisableTorchFunctionSubclass", sizeof(Disable), 0,
                            Py_TPFLAGS_DEFAULT, slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) return -1;
    int result = PyModule_AddObjectRef(module, "DisableTorchFunctionSubclass", type);
    Py_DECREF(type);
    return result;
}

}  // namespace rushlight::python
