// The types dtype, device, Size and Generator.
#include <cstring>
#include <string>

#include "python/arguments.h"
#include "python/default_device.h"
#include "python/docstrings.h"
#include "rushlight/backend.h"

namespace rushlight::python {

PyTypeObject* DTypeType = nullptr;
PyTypeObject* DeviceType_ = nullptr;
PyTypeObject* GeneratorType = nullptr;
PyTypeObject* SizeType = nullptr;

namespace {

PyObject* dtype_objects[kNumDTypes];

DType dtype_of(PyObject* self) { return reinterpret_cast<PyDType*>(self)->dtype; }
Device device_of(PyObject* self) { return reinterpret_cast<PyDevice*>(self)->device; }
Generator& generator_of(PyObject* self) { return *reinterpret_cast<PyGenerator*>(self)->generator; }
Device device_of_generator(PyObject* self) { return reinterpret_cast<PyGenerator*>(self)->device; }

PyTypeObject* make_type(PyType_Spec& spec) { return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec)); }

void plain_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// --- dtype ---

PyObject* dtype_repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", name(dtype_of(self))); }
PyObject* dtype_reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(name(dtype_of(self))); }
PyObject* dtype_itemsize(PyObject* self, void*) { return PyLong_FromSize_t(itemsize(dtype_of(self))); }
PyObject* dtype_is_floating(PyObject* self, void*) { return PyBool_FromLong(is_floating(dtype_of(self))); }
PyObject* dtype_is_complex(PyObject* self, void*) { return PyBool_FromLong(is_complex(dtype_of(self))); }
PyObject* dtype_is_signed(PyObject* self, void*) { return PyBool_FromLong(is_signed(dtype_of(self))); }
PyObject* dtype_to_real(PyObject* self, PyObject*) { return wrap(real_dtype(dtype_of(self))); }
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
    RL_PY_TRY
    const DType t = dtype_of(self);
    RL_CHECK(is_differentiable(t) && !is_float8(t), throw_runtime,
             "dtype.to_complex(): no complex dtype corresponds to %s", name(t));
    RL_CHECK(t != DType::Float16, throw_runtime,
             "dtype.to_complex(): complex32, the dtype with parts of float16, is not supported");
    return wrap(complex_dtype(t));
    RL_PY_CATCH
}
PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS,
     "to_real($self)\n--\n\nReturn the dtype of the real and imaginary parts, or the dtype itself if it is not complex."},
    {"to_complex", dtype_to_complex, METH_NOARGS,
     "to_complex($self)\n--\n\nReturn the complex dtype whose parts have this dtype; complex64 for bfloat16."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef dtype_properties[] = {
    {"itemsize", dtype_itemsize, nullptr, "The size of one element in bytes.", nullptr},
    {"is_floating_point", dtype_is_floating, nullptr, nullptr, nullptr},
    {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
    {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// --- device ---

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"type", "index", nullptr};
    PyObject* type;
    PyObject* index = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type, &index))
        return nullptr;
    RL_PY_TRY
    Device device;
    RL_CHECK(to_device(type, device), throw_type, "device(type): must be a str, an int or a device, not %s",
             Py_TYPE(type)->tp_name);
    if (index != Py_None) {
        int64_t i;
        RL_CHECK(to_int(index, i) && i >= 0 && i < 128, throw_runtime,
                 "device(type, index): index must be an integer from 0 to 127");
        RL_CHECK(
            device.index < 0, throw_runtime,
            "device(type, index): index must be omitted, because the type string already contains an index");
        device.index = static_cast<int8_t>(i);
    }
    return wrap(device);
    RL_PY_CATCH
}
PyObject* device_repr(PyObject* self) {
    Device d = device_of(self);
    std::string type = name(Device{d.type, -1});
    if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", type.c_str());
    return PyUnicode_FromFormat("device(type='%s', index=%d)", type.c_str(), int(d.index));
}
PyObject* device_str(PyObject* self) { return PyUnicode_FromString(name(device_of(self)).c_str()); }
PyObject* device_type(PyObject* self, void*) {
    return PyUnicode_FromString(name(Device{device_of(self).type, -1}).c_str());
}
PyObject* device_index(PyObject* self, void*) {
    int index = device_of(self).index;
    if (index < 0) Py_RETURN_NONE;
    return PyLong_FromLong(index);
}
PyObject* device_compare(PyObject* a, PyObject* b, int how) {
    if (!PyObject_TypeCheck(b, DeviceType_) || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((device_of(a) == device_of(b)) == (how == Py_EQ));
}
Py_hash_t device_hash(PyObject* self) {
    Device d = device_of(self);
    return static_cast<Py_hash_t>(d.type) * 256 + d.index + 2;
}
PyObject* device_reduce(PyObject* self, PyObject*) {
    return Py_BuildValue("O(s)", DeviceType_, name(device_of(self)).c_str());
}
PyObject* device_enter(PyObject* self, PyObject*) {
    RL_PY_TRY
    enter_device(device_of(self));
    return Py_NewRef(self);
    RL_PY_CATCH
}
PyObject* device_exit(PyObject*, PyObject*) {
    RL_PY_TRY
    leave_device();
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS,
     "Create tensors on this device inside the `with` block, unless another device is given."},
    {"__exit__", device_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef device_properties[] = {{"type", device_type, nullptr, nullptr, nullptr},
                                   {"index", device_index, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

// --- Generator ---

// Returns a new object of Generator or of a subclass.
PyObject* make_generator(PyTypeObject* type, Ref<Generator> generator, Device device) {
    auto* self = reinterpret_cast<PyGenerator*>(type->tp_alloc(type, 0));
    if (!self) throw PythonError();
    new (&self->generator) Ref<Generator>(std::move(generator));
    self->device = device;
    return reinterpret_cast<PyObject*>(self);
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"device", nullptr};
    PyObject* device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device))
        return nullptr;
    RL_PY_TRY
    Device d;
    if (device != Py_None) {
        RL_CHECK(to_device(device, d), throw_type,
                 "Generator(device): must be a device, a str, an int or None, not %s",
                 Py_TYPE(device)->tp_name);
        RL_CHECK(d.type != DeviceType::Meta, throw_runtime,
                 "Generator(device): the meta device has no random numbers");
        d = resolve(d);  // raises an error if there is no such device
    }
    return make_generator(type, Generator::make(), d);
    RL_PY_CATCH
}
void generator_dealloc(PyObject* self) {
    reinterpret_cast<PyGenerator*>(self)->generator.~Ref<Generator>();
    plain_dealloc(self);
}
PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
    RL_PY_TRY
    // As in PyTorch, a negative seed is converted to the unsigned number with the same bits.
    Object index = Object::steal(PyNumber_Index(seed));
    if (!index) return nullptr;
    int overflow = 0;
    auto value = static_cast<uint64_t>(PyLong_AsLongLongAndOverflow(index.get(), &overflow));
    if (overflow > 0) value = PyLong_AsUnsignedLongLong(index.get());
    if (overflow < 0 || PyErr_Occurred()) {
        PyErr_Clear();
        throw_value("manual_seed(seed): needs an integer of 64 bits, from -2^63 to 2^64 - 1");
    }
    generator_of(self).manual_seed(value);
    return Py_NewRef(self);
    RL_PY_CATCH
}
PyObject* generator_seed(PyObject* self, PyObject*) {
    RL_PY_TRY return PyLong_FromUnsignedLongLong(generator_of(self).seed());
    RL_PY_CATCH
}
PyObject* generator_initial_seed(PyObject* self, PyObject*) {
    RL_PY_TRY return PyLong_FromUnsignedLongLong(generator_of(self).initial_seed());
    RL_PY_CATCH
}
PyObject* generator_get_state(PyObject* self, PyObject*) {
    RL_PY_TRY
    auto state = generator_of(self).get_state();
    auto n = static_cast<int64_t>(state.size());
    Tensor t = make_tensor(IntList(&n, 1), DType::UInt8);
    std::memcpy(t.data<uint8_t>(), state.data(), state.size());
    return wrap(std::move(t));
    RL_PY_CATCH
}
PyObject* generator_set_state(PyObject* self, PyObject* state) {
    RL_PY_TRY
    RL_CHECK(is_tensor(state), throw_type, "set_state(state): must be a uint8 Tensor, not %s",
             Py_TYPE(state)->tp_name);
    const Tensor& t = unwrap(state);
    RL_CHECK(
        t.dtype() == DType::UInt8 && t.dim() == 1 && t.is_contiguous() && t.device().type == DeviceType::CPU,
        throw_type,
        "set_state(state): must be a contiguous 1-D uint8 Tensor on the CPU, got shape %s of dtype %s on %s",
        to_string(t.sizes()).c_str(), name(t.dtype()), name(t.device()).c_str());
    generator_of(self).set_state({t.data<uint8_t>(), static_cast<size_t>(t.numel())});
    return Py_NewRef(self);
    RL_PY_CATCH
}
PyObject* generator_clone_state(PyObject* self, PyObject*) {
    RL_PY_TRY
    Ref<Generator> clone = Generator::make();
    clone->set_state(generator_of(self).get_state());
    return make_generator(GeneratorType, std::move(clone), device_of_generator(self));
    RL_PY_CATCH
}
PyObject* generator_reduce(PyObject* self, PyObject*) {
    PyObject* state = generator_get_state(self, nullptr);
    if (!state) return nullptr;
    RL_PY_TRY return Py_BuildValue("(O(N)N)", GeneratorType, wrap(device_of_generator(self)), state);
    RL_PY_CATCH
}
const char* stream_name(RandomStream stream) { return stream == RandomStream::Torch ? "torch" : "philox"; }
PyObject* get_random_stream(PyObject*, PyObject*) {
    RL_PY_TRY return PyUnicode_FromString(stream_name(random_stream()));
    RL_PY_CATCH
}
PyObject* choose_random_stream(PyObject*, PyObject* name) {
    RL_PY_TRY
    RL_CHECK(PyUnicode_Check(name), throw_type, "random.stream(name): must be a str, not %s",
             Py_TYPE(name)->tp_name);
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    const bool torch = std::string_view(text) == "torch";
    RL_CHECK(torch || std::string_view(text) == "philox", throw_value,
             "random.stream(name): must be 'philox' or 'torch', got '%s'", text);
    set_random_stream(torch ? RandomStream::Torch : RandomStream::Philox);
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyMethodDef random_functions[] = {
    {"random_stream", get_random_stream, METH_NOARGS, docstrings::random_stream_},
    {"set_random_stream", choose_random_stream, METH_O, docstrings::set_random_stream_},
    {nullptr, nullptr, 0, nullptr}};
PyObject* generator_stream(PyObject* self, void*) {
    return PyUnicode_FromString(stream_name(generator_of(self).stream()));
}
PyObject* generator_device(PyObject* self, void*) {
    RL_PY_TRY return wrap(device_of_generator(self));
    RL_PY_CATCH
}
PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\nSet the seed, restart the sequence, and return the generator."},
    {"seed", generator_seed, METH_NOARGS,
     "seed($self)\n--\n\nSeed the generator with a random number from the system, and return the seed."},
    {"initial_seed", generator_initial_seed, METH_NOARGS,
     "initial_seed($self)\n--\n\nReturn the seed with which the generator was last seeded."},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state($self)\n--\n\nReturn the state as a uint8 tensor."},
    {"set_state", generator_set_state, METH_O,
     "set_state($self, state, /)\n--\n\nSet the state of the generator to a state that get_state() returned."},
    {"clone_state", generator_clone_state, METH_NOARGS,
     "clone_state($self)\n--\n\nReturn a new generator in the same state."},
    {"__reduce__", generator_reduce, METH_NOARGS, "Support pickle and copy."},
    {"__setstate__", generator_set_state, METH_O, "Same as set_state()."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef generator_properties[] = {
    {"device", generator_device, nullptr, nullptr, nullptr},
    {"stream", generator_stream, nullptr, "The stream of random numbers in use: \"philox\" or \"torch\".",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// --- Size ---

PyObject* size_numel(PyObject* self, PyObject*) {
    RL_PY_TRY
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
        int64_t v;
        RL_CHECK(to_int(PyTuple_GET_ITEM(self, i), v), throw_type, "Size holds integers only");
        n *= v;
    }
    return PyLong_FromLongLong(n);
    RL_PY_CATCH
}
PyObject* size_repr(PyObject* self) {
    std::string text = "torch.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
        PyObject* part = PyObject_Repr(PyTuple_GET_ITEM(self, i));
        if (!part) return nullptr;
        text += (i ? ", " : "") + std::string(PyUnicode_AsUTF8(part));
        Py_DECREF(part);
    }
    return PyUnicode_FromString((text + "])").c_str());
}
// Converts an element of a Size to a Python int of 64 bits. The element may be an integer of any class, or an integer
// tensor with one element.
PyObject* size_item(PyObject* item, Py_ssize_t i) {
    int64_t v;
    if (is_tensor(item) ? !is_integral(unwrap(item).dtype(), true) || unwrap(item).numel() != 1
                        : !PyIndex_Check(item))
        throw_type("torch.Size(): holds integers only, item %zd is of class %s", i, Py_TYPE(item)->tp_name);
    if (PyLong_CheckExact(item)) {
        RL_CHECK(to_int(item, v), throw_type, "torch.Size(): item %zd must be an integer", i);
        return Py_NewRef(item);
    }
    to_int(item, v);
    Object number = Object::steal(PyLong_FromLongLong(v));
    return number.release();
}
// Converts the result of a slice, sum or repetition of tuples to a Size. Takes over the reference `made`.
PyObject* as_size(PyObject* made, PyTypeObject* type = SizeType) {
    if (!made || !PyTuple_CheckExact(made)) return made;
    RL_PY_TRY
    const Object items = Object::steal(made);
    const Py_ssize_t n = PyTuple_GET_SIZE(made);
    Object size = Object::steal(type->tp_alloc(type, n));
    for (Py_ssize_t i = 0; i < n; ++i)
        PyTuple_SET_ITEM(size.get(), i, size_item(PyTuple_GET_ITEM(made, i), i));
    return size.release();
    RL_PY_CATCH
}
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    return as_size(PyTuple_Type.tp_new(&PyTuple_Type, args, kwargs), type);
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
    PyObject* made = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    return PySlice_Check(key) ? as_size(made) : made;
}
// One operand may be a tuple. A list raises the same error as for tuples.
PyObject* size_add(PyObject* a, PyObject* b) {
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_repeat(PyObject* self, Py_ssize_t n) {
    return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
}
PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel($self)\n--\n\nReturn the product of the sizes."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* wrap(DType t) { return Py_NewRef(dtype_objects[static_cast<int>(t)]); }

PyObject* wrap(Device d) {
    auto* self = PyObject_New(PyDevice, DeviceType_);
    if (!self) throw PythonError();
    self->device = d;
    return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap_generator(Ref<Generator> g) { return make_generator(GeneratorType, std::move(g), Device{}); }

PyObject* wrap_size(IntList sizes) {
    Object tuple = Object::steal(SizeType->tp_alloc(SizeType, static_cast<Py_ssize_t>(sizes.size())));
    for (size_t i = 0; i < sizes.size(); ++i) {
        PyObject* v = PyLong_FromLongLong(sizes[i]);
        if (!v) throw PythonError();
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), v);
    }
    return tuple.release();
}

bool to_dtype(PyObject* o, DType& out) {
    if (Py_TYPE(o) == DTypeType) out = dtype_of(o);
    else if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) out = DType::Float64;
    else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) out = DType::Complex128;
    else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) out = DType::Int64;
    else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) out = DType::Bool;
    else return false;
    return true;
}

// Returns the device that an int stands for: the accelerator with this index. CUDA takes precedence over other backends.
static Device accelerator(PyObject* index) {
    int64_t i;
    RL_CHECK(to_int(index, i) && i >= 0 && i < 128, throw_runtime,
             "device(index): index must be an integer from 0 to 127");
    for (DeviceType type : {DeviceType::CUDA, DeviceType::Plugin})
        if (device_count(type) > 0) return {type, static_cast<int8_t>(i)};
    throw_runtime(
        "device(%lld): there is no accelerator, which an int would stand for\n"
        "hint: pass 'cpu', or check accelerator.is_available() first",
        static_cast<long long>(i));
}

bool to_device(PyObject* o, Device& out) {
    if (Py_TYPE(o) == DeviceType_) {
        out = device_of(o);
        return true;
    }
    if (PyLong_Check(o) && !PyBool_Check(o)) {
        out = accelerator(o);
        return true;
    }
    if (!PyUnicode_Check(o)) return false;
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) throw PythonError();
    out = parse_device({text, static_cast<size_t>(size)});
    return true;
}

int add_small_types(PyObject* module) {
    static PyType_Slot dtype_slots[] = {{Py_tp_doc, const_cast<char*>(docstrings::dtype_)},
                                        {Py_tp_repr, (void*)dtype_repr},
                                        {Py_tp_methods, dtype_methods},
                                        {Py_tp_getset, dtype_properties},
                                        {Py_tp_dealloc, (void*)plain_dealloc},
                                        {0, nullptr}};
    static PyType_Spec dtype_spec{"rushlight_core.dtype", sizeof(PyDType), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};
    static PyType_Slot device_slots[] = {{Py_tp_doc, const_cast<char*>(docstrings::device_)},
                                         {Py_tp_new, (void*)device_new},
                                         {Py_tp_repr, (void*)device_repr},
                                         {Py_tp_str, (void*)device_str},
                                         {Py_tp_methods, device_methods},
                                         {Py_tp_getset, device_properties},
                                         {Py_tp_richcompare, (void*)device_compare},
                                         {Py_tp_hash, (void*)device_hash},
                                         {Py_tp_dealloc, (void*)plain_dealloc},
                                         {0, nullptr}};
    static PyType_Spec device_spec{"rushlight_core.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT,
                                   device_slots};
    static PyType_Slot generator_slots[] = {{Py_tp_doc, const_cast<char*>(docstrings::Generator_)},
                                            {Py_tp_new, (void*)generator_new},
                                            {Py_tp_dealloc, (void*)generator_dealloc},
                                            {Py_tp_methods, generator_methods},
                                            {Py_tp_getset, generator_properties},
                                            {0, nullptr}};
    static PyType_Spec generator_spec{"rushlight_core.Generator", sizeof(PyGenerator), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, generator_slots};
    static PyType_Slot size_slots[] = {{Py_tp_base, &PyTuple_Type},
                                       {Py_tp_doc, const_cast<char*>(docstrings::Size_)},
                                       {Py_tp_new, (void*)size_new},
                                       {Py_tp_repr, (void*)size_repr},
                                       {Py_tp_methods, size_methods},
                                       {Py_mp_subscript, (void*)size_subscript},
                                       {Py_nb_add, (void*)size_add},
                                       {Py_sq_repeat, (void*)size_repeat},
                                       {0, nullptr}};
    static PyType_Spec size_spec{"rushlight_core.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

    DTypeType = make_type(dtype_spec);
    DeviceType_ = make_type(device_spec);
    GeneratorType = make_type(generator_spec);
    SizeType = make_type(size_spec);
    if (!DTypeType || !DeviceType_ || !GeneratorType || !SizeType) return -1;
    for (int i = 0; i < kNumDTypes; ++i) {
        auto* self = PyObject_New(PyDType, DTypeType);
        if (!self) return -1;
        self->dtype = static_cast<DType>(i);
        dtype_objects[i] = reinterpret_cast<PyObject*>(self);
        if (PyModule_AddObjectRef(module, name(self->dtype), dtype_objects[i]) < 0) return -1;
    }
    constexpr struct {
        const char* name;
        DType dtype;
    } aliases[] = {{"float", DType::Float32}, {"double", DType::Float64}, {"half", DType::Float16},
                   {"int", DType::Int32},     {"long", DType::Int64},     {"short", DType::Int16}};
    for (auto& alias : aliases)
        if (PyModule_AddObjectRef(module, alias.name, dtype_objects[static_cast<int>(alias.dtype)]) < 0)
            return -1;
    if (PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(DTypeType)) < 0 ||
        PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(DeviceType_)) < 0 ||
        PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(GeneratorType)) < 0 ||
        PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(SizeType)) < 0)
        return -1;
    try {
        if (PyModule_AddFunctions(module, random_functions) < 0) return -1;
        Object g = Object::steal(wrap_generator(Ref<Generator>::share(&default_generator())));
        return PyModule_AddObjectRef(module, "default_generator", g.get());
    } catch (...) {
        translate_exception();
        return -1;
    }
}

}  // namespace rushlight::python
