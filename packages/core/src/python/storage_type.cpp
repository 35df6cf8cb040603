// UntypedStorage: the Python object for the memory of tensors.
#include <unordered_map>

#include "python/arguments.h"
#include "python/docstrings.h"
#include "python/override.h"
#include "python/results.h"
#include "python/tables.h"
#include "rushlight/batched.h"

#include <structmember.h>  // names without the prefix Py_, which was added in Python 3.12

namespace rushlight::python {
namespace {

struct PyStorage {
    PyObject_HEAD Ref<Storage> storage;
    PyObject* weakrefs;
};
PyTypeObject* storage_type = nullptr;

// The Python object of each storage, while it exists. There is one object for each storage, so that pickle and deepcopy
// can detect shared storages. Guarded by the GIL.
std::unordered_map<Storage*, PyStorage*>& living() {
    static auto* map = new std::unordered_map<Storage*, PyStorage*>;
    return *map;
}

Storage& storage_of(PyObject* o) { return *reinterpret_cast<PyStorage*>(o)->storage; }

PyObject* wrap_storage(Storage* storage) {
    auto [it, fresh] = living().try_emplace(storage, nullptr);
    if (!fresh) return Py_NewRef(reinterpret_cast<PyObject*>(it->second));
    auto* self = reinterpret_cast<PyStorage*>(storage_type->tp_alloc(storage_type, 0));
    if (!self) {
        living().erase(it);
        return nullptr;
    }
    new (&self->storage) Ref<Storage>(Ref<Storage>::share(storage));
    it->second = self;
    return reinterpret_cast<PyObject*>(self);
}

void storage_dealloc(PyObject* o) {
    auto* self = reinterpret_cast<PyStorage*>(o);
    if (self->weakrefs) PyObject_ClearWeakRefs(o);
    living().erase(self->storage.get());
    self->storage.~Ref<Storage>();
    PyTypeObject* type = Py_TYPE(o);
    type->tp_free(o);
    Py_DECREF(type);
}

PyObject* storage_new(PyTypeObject*, PyObject* args, PyObject* keywords) {
    RL_PY_TRY
    Object module = Object::steal(PyImport_ImportModule("rushlight_core._storages"));
    Object function = Object::steal(PyObject_GetAttrString(module.get(), "new_storage"));
    return PyObject_Call(function.get(), args, keywords);
    RL_PY_CATCH
}

Py_ssize_t storage_length(PyObject* o) { return static_cast<Py_ssize_t>(storage_of(o).nbytes()); }

int storage_get_buffer(PyObject* o, Py_buffer* view, int flags) {
    view->obj = nullptr;
    RL_PY_TRY
    Storage& storage = storage_of(o);
    RL_CHECK(storage.device().type == DeviceType::CPU, throw_buffer,
             "buffer: needs a storage on the CPU, got one on %s", name(storage.device()).c_str());
    static char nothing[1];
    void* data = storage.data() ? storage.data() : nothing;
    if (PyBuffer_FillInfo(view, o, data, static_cast<Py_ssize_t>(storage.nbytes()), storage.read_only(),
                          flags) < 0)
        throw PythonError();
    storage.add_export();
    return 0;
    RL_PY_CATCH_INT
}
void storage_release_buffer(PyObject* o, Py_buffer*) { storage_of(o).drop_export(); }

PyObject* storage_repr(PyObject* o) {
    RL_PY_TRY
    Storage& s = storage_of(o);
    return PyUnicode_FromFormat("<UntypedStorage of %zu bytes on %s>", s.nbytes(), name(s.device()).c_str());
    RL_PY_CATCH
}
PyObject* storage_nbytes(PyObject* o, PyObject*) { return PyLong_FromSize_t(storage_of(o).nbytes()); }
PyObject* storage_data_ptr(PyObject* o, PyObject*) { return PyLong_FromVoidPtr(storage_of(o).data()); }
PyObject* storage_resizable(PyObject* o, PyObject*) {
    return PyBool_FromLong(storage_of(o).kind() == StorageKind::Cached && storage_of(o).exports() == 0);
}
// resize_(size): allows only larger sizes, since a tensor that refers to bytes beyond the new end would read other
// memory.
PyObject* storage_resize(PyObject* o, PyObject* size) {
    RL_PY_TRY
    int64_t nbytes;
    RL_CHECK(to_int(size, nbytes), throw_type, "UntypedStorage.resize_(size): must be an int, got %s",
             Py_TYPE(size)->tp_name);
    RL_CHECK(nbytes >= 0, throw_runtime, "UntypedStorage.resize_(size): got %lld, needs at least 0",
             static_cast<long long>(nbytes));
    Storage& storage = storage_of(o);
    RL_CHECK(
        static_cast<size_t>(nbytes) >= storage.nbytes(), throw_not_implemented,
        "UntypedStorage.resize_(size): %zu bytes cannot be resized to %lld, since tensors may refer to the memory\n"
        "hint: delete the tensors, or give them other memory with set_()",
        storage.nbytes(), static_cast<long long>(nbytes));
    if (static_cast<size_t>(nbytes) > storage.nbytes())
        storage.resize("UntypedStorage.resize_", static_cast<size_t>(nbytes));
    return Py_NewRef(o);
    RL_PY_CATCH
}
PyObject* storage_reduce(PyObject* o, PyObject* protocol) {
    RL_PY_TRY
    Object module = Object::steal(PyImport_ImportModule("rushlight_core._pickling"));
    return PyObject_CallMethod(module.get(), "reduce_storage", "OO", o, protocol);
    RL_PY_CATCH
}
PyObject* storage_deepcopy(PyObject* o, PyObject*) {
    RL_PY_TRY
    Storage& s = storage_of(o);
    RL_CHECK(s.device().type == DeviceType::CPU, throw_not_implemented,
             "deepcopy: not supported for a storage on %s, only for storages on the CPU",
             name(s.device()).c_str());
    Ref<Storage> copy = Storage::allocate(s.nbytes(), s.device());
    if (s.nbytes()) std::memcpy(copy->data(), s.data(), s.nbytes());
    return wrap_storage(copy.get());
    RL_PY_CATCH
}
// _move_to(target, is_copied=False): replaces this storage's memory by that of `target`, for all its tensors. If `is_copied`
// is true, `target` already has the bytes.
PyObject* storage_move_to(PyObject* o, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 1 || nargs == 2, throw_type,
             "UntypedStorage._move_to(target, is_copied): takes 1 or 2 arguments, got %zd", nargs);
    PyObject* target = args[0];
    RL_CHECK(PyObject_TypeCheck(target, storage_type), throw_type,
             "UntypedStorage._move_to(target): must be an UntypedStorage, got %s", Py_TYPE(target)->tp_name);
    const int is_copied = nargs == 2 ? PyObject_IsTrue(args[1]) : 0;
    if (is_copied < 0) return nullptr;
    storage_of(o).move_to(reinterpret_cast<PyStorage*>(target)->storage, is_copied != 0);
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyObject* storage_device(PyObject* o, void*) {
    RL_PY_TRY return wrap(storage_of(o).device());
    RL_PY_CATCH
}

PyObject* method_untyped_storage(PyObject* self, PyObject*) {
    RL_PY_TRY
    require_values("untyped_storage()", unwrap(self));
    return wrap_storage(unwrap(self).impl()->storage());
    RL_PY_CATCH
}

bool to_sizes(PyObject* o, std::vector<int64_t>& out) {
    Object list = Object::steal(PySequence_Fast(o, "sizes and strides must be sequences of ints"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
        if (!to_int(PySequence_Fast_GET_ITEM(list.get(), i), out.emplace_back())) return false;
    return true;
}

// _tensor_over(storage, dtype, size, stride, offset): returns a tensor over the storage. The geometry is checked.
PyObject* tensor_over(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 5, throw_type, "_tensor_over takes 5 arguments");
    RL_CHECK(PyObject_TypeCheck(args[0], storage_type), throw_type,
             "_tensor_over(storage): must be an UntypedStorage");
    DType dtype;
    RL_CHECK(to_dtype(args[1], dtype), throw_type, "_tensor_over(dtype): must be a dtype");
    std::vector<int64_t> sizes, strides;
    int64_t offset;
    RL_CHECK(to_sizes(args[2], sizes) && to_sizes(args[3], strides) && to_int(args[4], offset), throw_type,
             "_tensor_over(size, stride, offset): must be ints");
    RL_CHECK(sizes.size() == strides.size(), throw_value,
             "_tensor_over(size, stride): must have the same length, got %zu and %zu", sizes.size(),
             strides.size());
    return wrap(make_over(reinterpret_cast<PyStorage*>(args[0])->storage, sizes, strides, offset, dtype));
    RL_PY_CATCH
}

PyMethodDef methods[] = {
    {"nbytes", storage_nbytes, METH_NOARGS, "nbytes($self)\n--\n\nReturn the size in bytes."},
    {"size", storage_nbytes, METH_NOARGS, "size($self)\n--\n\nReturn the size in bytes."},
    {"data_ptr", storage_data_ptr, METH_NOARGS,
     "data_ptr($self)\n--\n\nReturn the address of the first byte."},
    {"resizable", storage_resizable, METH_NOARGS,
     "resizable($self)\n--\n\nReturn whether the memory can be resized: this library must have allocated the memory,"
     " and no other object may refer to it."},
    {"resize_", storage_resize, METH_O,
     "resize_($self, size, /)\n--\n\nMake the memory larger, in place, to `size` bytes; the new bytes are not initialised."},
    {"_move_to", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(storage_move_to)), METH_FASTCALL,
     nullptr},
    {"__reduce_ex__", storage_reduce, METH_O, nullptr},
    {"__deepcopy__", storage_deepcopy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyObject* storage_cdata(PyObject* o, void*) { return PyLong_FromVoidPtr(&storage_of(o)); }
PyGetSetDef properties[] = {
    {"device", storage_device, nullptr, "The device on which the memory is allocated.", nullptr},
    {"_cdata", storage_cdata, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef functions[] = {
    {"_tensor_over", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_over)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyMethodDef storage_methods[] = {
    {"untyped_storage", Seen<"untyped_storage">::of<method_untyped_storage>, METH_NOARGS,
     "untyped_storage($self)\n--\n\nReturn the memory of the tensor as bytes."},
    {nullptr, nullptr, 0, nullptr}};

int add_storage_type(PyObject* module) {
    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, offsetof(PyStorage, weakrefs), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(storage_new)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
                                  {Py_tp_repr, reinterpret_cast<void*>(storage_repr)},
                                  {Py_tp_methods, methods},
                                  {Py_tp_members, members},
                                  {Py_tp_getset, properties},
                                  {Py_sq_length, reinterpret_cast<void*>(storage_length)},
                                  {Py_bf_getbuffer, reinterpret_cast<void*>(storage_get_buffer)},
                                  {Py_bf_releasebuffer, reinterpret_cast<void*>(storage_release_buffer)},
                                  {Py_tp_doc, const_cast<char*>(docstrings::UntypedStorage_)},
                                  {0, nullptr}};
    static PyType_Spec spec{"rushlight_core.UntypedStorage", sizeof(PyStorage), 0, Py_TPFLAGS_DEFAULT, slots};
    storage_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!storage_type || PyModule_AddFunctions(module, functions) < 0) return -1;
    return PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(storage_type));
}

}  // namespace rushlight::python
