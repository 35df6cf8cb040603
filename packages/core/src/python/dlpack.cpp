// DLPack in both directions: Tensor.__dlpack__ and from_dlpack.
#include "tensor/dlpack.h"
#include "ops/copying.h"
#include "python/arguments.h"
#include "python/docstrings.h"
#include "python/override.h"
#include "python/release.h"
#include "rushlight/streams.h"

namespace rushlight::python {
namespace {

using namespace dlpack;
using Plain = rushlight::Device;

// Names of the capsules, before and after a consumer has taken the array.
constexpr const char* kCapsule = "dltensor";
constexpr const char* kUsedCapsule = "used_dltensor";
constexpr const char* kVersionedCapsule = "dltensor_versioned";
constexpr const char* kUsedVersionedCapsule = "used_dltensor_versioned";

// The standard's numbers of CUDA's streams: 1 is the default stream, as is None, and larger numbers are addresses.
void* from_number(int64_t stream) {
    return stream <= 1 ? nullptr : reinterpret_cast<void*>(static_cast<intptr_t>(stream));
}
int64_t number_of(void* stream) {
    return stream ? static_cast<int64_t>(reinterpret_cast<intptr_t>(stream)) : 1;
}

// --- export ---

template <class M>
void destroy_capsule(PyObject* capsule, const char* name) {
    if (!PyCapsule_IsValid(capsule, name)) return;  // a consumer has taken the array
    auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
    if (managed->deleter) managed->deleter(managed);
}

bool two_ints(PyObject* o, int64_t& a, int64_t& b) {
    return PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 2 && to_int(PyTuple_GET_ITEM(o, 0), a) &&
           to_int(PyTuple_GET_ITEM(o, 1), b);
}

PyObject* method_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOO:__dlpack__", const_cast<char**>(names), &stream,
                                     &max_version, &dl_device, &copy))
        return nullptr;
    RL_PY_TRY
    Tensor t = unwrap(self);
    RL_CHECK(!t.requires_grad(), throw_buffer,
             "__dlpack__(): this tensor requires grad, and writes by other libraries cannot be recorded\n"
             "hint: use detach() first");
    int64_t stream_number = 0, major = 0, minor = 0, type = 0, id = 0;
    RL_CHECK(stream == Py_None || (PyLong_Check(stream) && to_int(stream, stream_number)), throw_type,
             "__dlpack__(stream): must be None or an int, not %s", Py_TYPE(stream)->tp_name);
    RL_CHECK(max_version == Py_None || two_ints(max_version, major, minor), throw_type,
             "__dlpack__(max_version): must be None or a tuple of two ints");
    RL_CHECK(copy == Py_None || PyBool_Check(copy), throw_type,
             "__dlpack__(copy): must be None or a bool, not %s", Py_TYPE(copy)->tp_name);
    bool copied = copy == Py_True;
    dlpack::Device here = device_of(t.device(), "__dlpack__()");
    if (dl_device != Py_None) {
        RL_CHECK(two_ints(dl_device, type, id), throw_type,
                 "__dlpack__(dl_device): must be None or a tuple of two ints");
        if (type != here.type || id != here.id) {
            RL_CHECK(type == kCPU, throw_buffer,
                     "__dlpack__(dl_device): the tensor is on %s, and cannot be exported to device (%lld, "
                     "%lld)\n"
                     "hint: move it with to() first",
                     name(t.device()).c_str(), (long long)type, (long long)id);
            RL_CHECK(
                copy != Py_False, throw_buffer,
                "__dlpack__(dl_device, copy): exporting a tensor on %s to the CPU needs a copy, which copy=False "
                "forbids",
                name(t.device()).c_str());
            copied = true;
            here = {kCPU, 0};
        }
    }
    RL_CHECK(here.type != kCPU || stream == Py_None, throw_buffer,
             "__dlpack__(stream): must be None for a tensor on the CPU, which has no streams");
    if (copied) {
        Tensor fresh = make_tensor(t.sizes(), t.dtype(), here.type == kCPU ? Plain{} : t.device());
        copy_into(fresh, t);
        t = fresh;
    }
    // Makes the consumer's stream wait for the work on the memory. -1 means that the consumer synchronises.
    if (here.type != kCPU && stream_number != -1)
        order_streams(t.device(), current_stream(t.device()), t.device(), from_number(stream_number));

    bool read_only = t.impl()->storage()->read_only();
    if (major >= 1) {
        ManagedVersioned* managed = share_versioned(t, "__dlpack__()");
        managed->flags |= copied ? kIsCopied : 0;
        PyObject* capsule = PyCapsule_New(managed, kVersionedCapsule, [](PyObject* c) {
            destroy_capsule<ManagedVersioned>(c, kVersionedCapsule);
        });
        if (!capsule) managed->deleter(managed);
        return capsule;
    }
    RL_CHECK(!read_only, throw_buffer,
             "__dlpack__(): this tensor is read-only, which DLPack before version 1.0 cannot express\n"
             "hint: pass max_version=(1, 0), or clone() first");
    Managed* managed = share(t, "__dlpack__()");
    PyObject* capsule =
        PyCapsule_New(managed, kCapsule, [](PyObject* c) { destroy_capsule<Managed>(c, kCapsule); });
    if (!capsule) managed->deleter(managed);
    return capsule;
    RL_PY_CATCH
}

PyObject* method_dlpack_device(PyObject* self, PyObject*) {
    RL_PY_TRY
    dlpack::Device d = device_of(unwrap(self).device(), "__dlpack_device__()");
    return Py_BuildValue("(ii)", int(d.type), int(d.id));
    RL_PY_CATCH
}

// --- import ---

// Deleters of Python libraries acquire the GIL themselves if they need it. For other libraries it is acquired here.
template <class M>
void release_managed(void* context, void*, size_t) {
    run_with_gil(
        [](void* c) {
            auto* managed = static_cast<M*>(c);
            if (managed->deleter) managed->deleter(managed);
        },
        context);
}

Tensor import_capsule(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, kVersionedCapsule)) {
        auto* managed = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersionedCapsule));
        RL_CHECK(
            managed->version.major == kVersion.major, throw_buffer,
            "from_dlpack(ext_tensor): the array has version %u.%u of DLPack, but this library reads %u.x",
            managed->version.major, managed->version.minor, kVersion.major);
        PyCapsule_SetName(capsule, kUsedVersionedCapsule);
        return tensor_over(managed->array, release_managed<ManagedVersioned>, managed,
                           managed->flags & kReadOnly, "from_dlpack(ext_tensor)");
    }
    RL_CHECK(PyCapsule_IsValid(capsule, kCapsule), throw_buffer,
             "from_dlpack(ext_tensor): the capsule '%s' holds no array, or was used already",
             PyCapsule_GetName(capsule) ? PyCapsule_GetName(capsule) : "");
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kCapsule));
    PyCapsule_SetName(capsule, kUsedCapsule);
    return tensor_over(managed->array, release_managed<Managed>, managed, false, "from_dlpack(ext_tensor)");
}

// Returns the arguments for a producer of the first standard: on a CUDA device, the stream on which this thread will use
// the memory.
Object first_arguments(PyObject* dl_device) {
    Object keywords = Object::steal(PyDict_New());
    int64_t type = 0, index = 0;
    if (two_ints(dl_device, type, index) && type == kCUDA) {
        void* const stream = current_stream({DeviceType::CUDA, static_cast<int8_t>(index)});
        const Object number = Object::steal(PyLong_FromLongLong(number_of(stream)));
        if (PyDict_SetItemString(keywords.get(), "stream", number.get()) < 0) throw PythonError();
    }
    return keywords;
}

// Calls producer.__dlpack__ with the arguments of the current standard. If the producer implements the first standard,
// calls it with the arguments of the first standard and sets `older`; the caller then has to handle `copy`.
Object ask_for_capsule(PyObject* producer, PyObject* here, PyObject* dl_device, PyObject* copy, bool& older) {
    Object method = Object::steal(PyObject_GetAttrString(producer, "__dlpack__"));
    const Object first = first_arguments(dl_device == Py_None ? here : dl_device);
    Object keywords = Object::steal(PyDict_Copy(first.get()));
    const Object version = Object::steal(Py_BuildValue("(ii)", int(kVersion.major), int(kVersion.minor)));
    if (PyDict_SetItemString(keywords.get(), "max_version", version.get()) < 0) throw PythonError();
    if (dl_device != Py_None && PyDict_SetItemString(keywords.get(), "dl_device", dl_device) < 0)
        throw PythonError();
    if (copy != Py_None && PyDict_SetItemString(keywords.get(), "copy", copy) < 0) throw PythonError();
    Object none = Object::steal(PyTuple_New(0));
    if (PyObject* capsule = PyObject_Call(method.get(), none.get(), keywords.get()))
        return Object::steal(capsule);
    older = PyErr_ExceptionMatches(PyExc_TypeError) && dl_device == Py_None && copy != Py_False;
    if (!older) throw PythonError();
    PyErr_Clear();
    return Object::steal(PyObject_Call(method.get(), none.get(), first.get()));
}

PyObject* from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"ext_tensor", "device", "copy", nullptr};
    PyObject *producer, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(names), &producer,
                                     &device, &copy))
        return nullptr;
    RL_PY_TRY
    run_waiting_releases();
    if (PyCapsule_CheckExact(producer)) {
        RL_CHECK(device == Py_None && copy == Py_None, throw_type,
                 "from_dlpack(device, copy): can be given only for objects with __dlpack__, not for a "
                 "capsule");
        return wrap(import_capsule(producer));
    }
    RL_CHECK(PyObject_HasAttrString(producer, "__dlpack__"), throw_type,
             "from_dlpack(ext_tensor): %s has no __dlpack__", Py_TYPE(producer)->tp_name);
    RL_CHECK(copy == Py_None || PyBool_Check(copy), throw_type,
             "from_dlpack(copy): must be None or a bool, not %s", Py_TYPE(copy)->tp_name);
    Object here = Object::borrow(Py_None), dl_device = Object::borrow(Py_None);
    if (PyObject_HasAttrString(producer, "__dlpack_device__"))
        here = Object::steal(PyObject_CallMethod(producer, "__dlpack_device__", nullptr));
    if (device != Py_None) {
        Plain wanted;
        RL_CHECK(to_device(device, wanted), throw_type,
                 "from_dlpack(device): must be a device, a str or an int, not %s", Py_TYPE(device)->tp_name);
        dlpack::Device d = device_of(wanted, "from_dlpack(device)");
        dl_device = Object::steal(Py_BuildValue("(ii)", int(d.type), int(d.id)));
        // Producers of the first standard do not accept dl_device. This argument is not needed if the memory is on that
        // device already.
        const int same = PyObject_RichCompareBool(here.get(), dl_device.get(), Py_EQ);
        if (same < 0) throw PythonError();
        if (same) dl_device = Object::borrow(Py_None);
    }
    bool older = false;
    Object capsule = ask_for_capsule(producer, here.get(), dl_device.get(), copy, older);
    RL_CHECK(PyCapsule_CheckExact(capsule.get()), throw_type,
             "from_dlpack(ext_tensor): %s.__dlpack__ returned %s", Py_TYPE(producer)->tp_name,
             Py_TYPE(capsule.get())->tp_name);
    Tensor t = import_capsule(capsule.get());
    if (!older || copy != Py_True) return wrap(std::move(t));
    Tensor fresh = make_tensor(t.sizes(), t.dtype(), t.device());
    copy_into(fresh, t);
    return wrap(std::move(fresh));
    RL_PY_CATCH
}

#define RL_KEYWORDS(...) \
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(__VA_ARGS__)), METH_VARARGS | METH_KEYWORDS

PyMethodDef functions[] = {{"from_dlpack", RL_KEYWORDS(from_dlpack), docstrings::from_dlpack_},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyMethodDef dlpack_methods[] = {
    {"__dlpack__", RL_KEYWORDS(Seen<"__dlpack__">::of<method_dlpack>),
     "__dlpack__(stream=None, *, max_version=None, dl_device=None, copy=None)\n\nReturn a capsule from which other array "
     "libraries can import the tensor. Raises BufferError if the memory cannot be shared."},
    {"__dlpack_device__", Seen<"__dlpack_device__">::of<method_dlpack_device>, METH_NOARGS,
     "Return the device type and index in DLPack's numbering."},
    {nullptr, nullptr, 0, nullptr}};

int add_dlpack(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
