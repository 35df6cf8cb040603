// The Python type Tensor, and the lifetime of wrappers.
//
// Note [Wrappers]
// A tensor (TensorImpl) has at most one wrapper (PyTensor) at a time. Normally the wrapper owns the tensor and is
// destroyed when Python releases it. If C++ still holds the tensor, a new wrapper is made when the tensor is returned
// to Python again. This would lose the Python state of the wrapper: a __dict__, weak references, a subclass. So a
// wrapper with such state is kept as long as the tensor exists. Its dealloc resurrects it with one reference, which the
// tensor owns (`owns_wrapper`). From then on, the wrapper's pointer to the tensor is borrowed. A weak reference can
// still return the wrapper, and its tensor can be used. When the tensor is returned to Python, the ownership is
// reversed again. When C++ drops its last reference to the tensor, the wrapper takes it over. The wrapper then runs its
// finalizers, or keeps the tensor if a weak reference has returned the wrapper (`release_wrapper`).
#include <vector>

#include "python/docstrings.h"
#include "python/override.h"
#include "python/release.h"
#include "python/tables.h"

#include <structmember.h>  // names without the prefix Py_, which was added in Python 3.12

namespace rushlight::python {

PyTypeObject* TensorType = nullptr;

namespace {

// Plain wrappers are reused, so that making one allocates no memory. The list of free wrappers is guarded by the GIL.
#ifndef Py_GIL_DISABLED
constexpr int kMaxFree = 256;
PyTensor* free_list[kMaxFree];
int num_free = 0;
#endif

// The tensor whose wrapper is being finalised. The tensor must not become the owner of this wrapper again.
thread_local TensorImpl* dying = nullptr;

PyTensor* allocate_plain() {
#ifndef Py_GIL_DISABLED
    if (num_free > 0) [[likely]] {
        PyTensor* self = free_list[--num_free];
        PyObject_Init(reinterpret_cast<PyObject*>(self), TensorType);
        return self;
    }
#endif
    PyTensor* self = PyObject_GC_New(PyTensor, TensorType);
    if (!self) throw PythonError();
    new (&self->tensor) Tensor();
    self->dict = nullptr;
    self->weakrefs = nullptr;
    return self;
}

/// Returns the tensor that a wrapper owns; null if the tensor owns the wrapper.
TensorImpl* owned_tensor(PyTensor* self) {
    TensorImpl* impl = self->tensor.impl();
    return impl && impl->owns_wrapper() ? nullptr : impl;
}

bool keeps_state(PyTensor* self) { return self->dict || self->weakrefs || Py_TYPE(self) != TensorType; }

void tensor_dealloc(PyObject* object) {
    auto* self = reinterpret_cast<PyTensor*>(object);
    TensorImpl* impl = self->tensor.impl();
    if (impl && keeps_state(self) && impl != dying && impl->use_count() > 1) {
        Py_SET_REFCNT(object, 1);
        impl->set_wrapper(self, true);
        const Tensor last(Ref<TensorImpl>::adopt(impl));  // the wrapper's pointer is borrowed now
        return;
    }
    if (PyObject_GC_IsTracked(object)) PyObject_GC_UnTrack(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    if (impl) {
        impl->set_wrapper(nullptr, false);
        Tensor last = std::move(self->tensor);
    }
    Py_CLEAR(self->dict);
    PyTypeObject* type = Py_TYPE(object);
#ifndef Py_GIL_DISABLED
    if (type == TensorType && num_free < kMaxFree) [[likely]] {
        free_list[num_free++] = self;
        Py_DECREF(type);
        return;
    }
#endif
    self->tensor.~Tensor();
    type->tp_free(object);
    Py_DECREF(type);
}

// If C++ also holds the tensor, the wrapper may be returned to Python at any time, so everything that the wrapper
// refers to counts as in use and is not visited. Otherwise the collector visits the wrapper's attributes and the state
// that autograd attaches to the tensor.
int tensor_traverse(PyObject* object, visitproc visit, void* arg) {
    auto* self = reinterpret_cast<PyTensor*>(object);
    Py_VISIT(Py_TYPE(object));
    TensorImpl* impl = owned_tensor(self);
    if (impl && impl->use_count() > 1) return 0;
    Py_VISIT(self->dict);
    if (!impl) return 0;  // the tensor keeps the wrapper alive
    // If only this tensor refers to the grad, and the grad keeps its wrapper alive, then the wrapper is reachable only
    // through this tensor.
    if (TensorImpl* grad = impl->grad(); grad && grad->use_count() == 1 && grad->owns_wrapper()) {
        auto* wrapper = static_cast<PyObject*>(grad->wrapper());
        Py_VISIT(wrapper);
    }
    const MetaTable* meta = meta_table_or_null();
    if (!meta || !impl->meta()) return 0;
    struct Call {
        visitproc visit;
        void* arg;
    } call{visit, arg};
    return meta->traverse(
        impl->meta(),
        [](void* o, void* c) {
            auto* call = static_cast<Call*>(c);
            return call->visit(static_cast<PyObject*>(o), call->arg);
        },
        &call);
}

int tensor_clear(PyObject* object) {
    auto* self = reinterpret_cast<PyTensor*>(object);
    Py_CLEAR(self->dict);
    TensorImpl* impl = owned_tensor(self);
    if (impl && impl->use_count() == 1) {
        if (const MetaTable* meta = meta_table_or_null(); meta && impl->meta()) meta->clear(impl->meta());
        impl->set_grad(nullptr);
    }
    return 0;
}

// A wrapper with attributes must be tracked by the garbage collector.
int tensor_setattro(PyObject* object, PyObject* name, PyObject* value) {
    int result = PyObject_GenericSetAttr(object, name, value);
    if (result == 0 && reinterpret_cast<PyTensor*>(object)->dict && !PyObject_GC_IsTracked(object))
        PyObject_GC_Track(object);
    return result;
}

// Takes the last reference to a tensor that owns its wrapper, and passes it to the wrapper. The wrapper runs its
// finalizers, or keeps the tensor if a weak reference has returned the wrapper. Without the GIL this is done later
// (Note [Releases without the GIL]), when there may be other references again.
void release_wrapper(TensorImpl* impl) {
    if (!Py_IsInitialized()) return;
    if (!PyGILState_Check())
        return run_with_gil([](void* t) { Ref<TensorImpl>::adopt(static_cast<TensorImpl*>(t)); }, impl);
    // Prevents the reuse of the tensor's address while it is stored in `dying`.
    const Tensor kept = Tensor::share(impl);
    auto* wrapper = static_cast<PyObject*>(impl->wrapper());
    impl->set_wrapper(wrapper, false);
    TensorImpl* outer = std::exchange(dying, impl);
    Py_DECREF(wrapper);
    dying = outer;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    // Tensor(data), Tensor(*sizes) and Tensor() call the legacy constructor, which has another name in
    // rushlight_core._creation.
    static PyObject* legacy = nullptr;
    if (!legacy) {
        PyObject* module = PyImport_ImportModule("rushlight_core._creation");
        if (!module) return nullptr;
        legacy = PyObject_GetAttrString(module, "legacy_tensor");
        Py_DECREF(module);
        if (!legacy) return nullptr;
    }
    PyObject* made = PyObject_Call(legacy, args, kwargs);
    if (!made || type == TensorType) return made;
    RL_PY_TRY
    Object owner = Object::steal(made);
    return wrap_as(type, make_alias(unwrap(made)));
    RL_PY_CATCH
}

}  // namespace

PyObject* wrap(Tensor t) {
    TensorImpl* impl = t.impl();
    if (!impl) Py_RETURN_NONE;
    if (auto* existing = static_cast<PyTensor*>(impl->wrapper())) {
        if (impl->owns_wrapper()) {
            impl->set_wrapper(existing, false);
            t.release();  // the wrapper's pointer was borrowed and now owns the reference
            return reinterpret_cast<PyObject*>(existing);  // the tensor's reference becomes the caller's
        }
        return Py_NewRef(reinterpret_cast<PyObject*>(existing));
    }
    PyTensor* self = allocate_plain();
    impl->set_wrapper(self, false);
    self->tensor = std::move(t);
    return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap_as(PyTypeObject* type, Tensor t) {
    RL_CHECK(PyType_IsSubtype(type, TensorType), throw_type, "%s is not a subclass of Tensor", type->tp_name);
    if (type == TensorType) return wrap(std::move(t));
    RL_CHECK(!t.impl()->wrapper(), throw_runtime, "this tensor already has a Python object of another class");
    auto* self = reinterpret_cast<PyTensor*>(type->tp_alloc(type, 0));
    if (!self) throw PythonError();
    new (&self->tensor) Tensor();
    t.impl()->set_wrapper(self, false);
    self->tensor = std::move(t);
    if (overrides_operators(type)) self->tensor.impl()->set_stage(Stage::Python, true);
    return reinterpret_cast<PyObject*>(self);
}

int add_tensor_type(PyObject* module) {
    static PyNumberMethods numbers{};
    fill_number_slots(numbers);
    std::vector<PyMethodDef> methods;
    for (PyMethodDef* table : {generated_methods, tensor_methods, buffer_methods, dlpack_methods,
                               storage_methods, override_methods, python_methods()})
        for (PyMethodDef* m = table; m->ml_name; ++m) methods.push_back(*m);
    methods.push_back({nullptr, nullptr, 0, nullptr});
    static std::vector<PyMethodDef> kept;  // the type refers to this table
    kept = std::move(methods);
    static PyMemberDef members[] = {
        {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};

    std::vector<PyType_Slot> slots = {
        {Py_tp_doc, const_cast<char*>(docstrings::Tensor_)},
        {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
        {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
        {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
        {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
        {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattro)},
        {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
        {Py_tp_hash, reinterpret_cast<void*>(PyBaseObject_Type.tp_hash)},
        {Py_tp_repr, reinterpret_cast<void*>(tensor_repr)},
        {Py_tp_iter, reinterpret_cast<void*>(tensor_iter)},
        {Py_sq_contains, reinterpret_cast<void*>(tensor_contains)},
        {Py_tp_methods, kept.data()},
        {Py_tp_members, members},
        {Py_tp_getset, tensor_properties},
        {Py_mp_length, reinterpret_cast<void*>(tensor_mapping.mp_length)},
        {Py_mp_subscript, reinterpret_cast<void*>(tensor_mapping.mp_subscript)},
        {Py_mp_ass_subscript, reinterpret_cast<void*>(tensor_mapping.mp_ass_subscript)},
        {Py_bf_getbuffer, reinterpret_cast<void*>(tensor_buffer.bf_getbuffer)},
        {Py_bf_releasebuffer, reinterpret_cast<void*>(tensor_buffer.bf_releasebuffer)},
    };
    auto number = [&](int slot, auto function) {
        if (function) slots.push_back({slot, reinterpret_cast<void*>(function)});
    };
    number(Py_nb_add, numbers.nb_add);
    number(Py_nb_subtract, numbers.nb_subtract);
    number(Py_nb_multiply, numbers.nb_multiply);
    number(Py_nb_true_divide, numbers.nb_true_divide);
    number(Py_nb_floor_divide, numbers.nb_floor_divide);
    number(Py_nb_remainder, numbers.nb_remainder);
    number(Py_nb_matrix_multiply, numbers.nb_matrix_multiply);
    number(Py_nb_negative, numbers.nb_negative);
    number(Py_nb_positive, numbers.nb_positive);
    number(Py_nb_absolute, numbers.nb_absolute);
    number(Py_nb_invert, tensor_invert);
    number(Py_nb_and, numbers.nb_and);
    number(Py_nb_or, numbers.nb_or);
    number(Py_nb_xor, numbers.nb_xor);
    number(Py_nb_lshift, numbers.nb_lshift);
    number(Py_nb_rshift, numbers.nb_rshift);
    number(Py_nb_inplace_add, numbers.nb_inplace_add);
    number(Py_nb_inplace_subtract, numbers.nb_inplace_subtract);
    number(Py_nb_inplace_multiply, numbers.nb_inplace_multiply);
    number(Py_nb_inplace_true_divide, numbers.nb_inplace_true_divide);
    number(Py_nb_inplace_floor_divide, numbers.nb_inplace_floor_divide);
    number(Py_nb_inplace_remainder, numbers.nb_inplace_remainder);
    number(Py_nb_inplace_and, numbers.nb_inplace_and);
    number(Py_nb_inplace_or, numbers.nb_inplace_or);
    number(Py_nb_inplace_xor, numbers.nb_inplace_xor);
    number(Py_nb_inplace_lshift, numbers.nb_inplace_lshift);
    number(Py_nb_inplace_rshift, numbers.nb_inplace_rshift);
    slots.push_back({Py_nb_power, reinterpret_cast<void*>(tensor_power)});
    slots.push_back({Py_nb_inplace_power, reinterpret_cast<void*>(tensor_inplace_power)});
    slots.push_back({Py_nb_bool, reinterpret_cast<void*>(tensor_bool)});
    slots.push_back({Py_nb_int, reinterpret_cast<void*>(Seen<"__int__">::of<tensor_int>)});
    slots.push_back({Py_nb_float, reinterpret_cast<void*>(Seen<"__float__">::of<tensor_float>)});
    slots.push_back({Py_nb_index, reinterpret_cast<void*>(Seen<"__index__">::of<tensor_index>)});
    slots.push_back({0, nullptr});
    static PyType_Spec spec{"rushlight_core.Tensor", sizeof(PyTensor), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
    TensorType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    spec.slots = nullptr;
    if (!TensorType) return -1;
    set_wrapper_table({release_wrapper});
    return PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(TensorType));
}

}  // namespace rushlight::python
