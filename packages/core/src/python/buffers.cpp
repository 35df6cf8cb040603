// Memory that is shared with Python through the buffer protocol (PEP 3118), in both directions. NumPy arrays are shared
// in this way. This file also contains the checksum of buffers.
#include <cstring>
#include <vector>

#include "ops/copying.h"
#include "python/arguments.h"
#include "python/conversions.h"
#include "python/docstrings.h"
#include "python/gil.h"
#include "python/override.h"
#include "python/release.h"
#include "python/tables.h"
#include "runtime/crc32.h"
#include "rushlight/batched.h"
#include "rushlight/sparse.h"

namespace rushlight::python {
namespace {

// --- export: tensors as buffers ---

// The memory of an exported buffer. It refers to the storage instead of the tensor, because the tensor may be given
// other memory while the consumer still reads the old memory.
struct Exported {
    Ref<Storage> storage;
    Py_ssize_t dims[];  // shape, then strides in bytes
};

// The format of a dtype, a character of the struct module; null if there is none.
const char* format_of(DType dtype) {
    switch (dtype) {
        case DType::Bool: return "?";
        case DType::UInt8: return "B";
        case DType::Int8: return "b";
        case DType::Int16: return "h";
        case DType::UInt16: return "H";
        case DType::Int32: return "i";
        case DType::UInt32: return "I";
        case DType::Int64: return "l";
        case DType::UInt64: return "L";
        case DType::Float16: return "e";
        case DType::Float32: return "f";
        case DType::Float64: return "d";
        case DType::Complex64: return "Zf";
        case DType::Complex128: return "Zd";
        default: return nullptr;  // bfloat16 and float8
    }
}

bool fortran_contiguous(const Tensor& t) {
    int64_t step = 1;
    for (int64_t d = 0; d < t.dim(); ++d) {
        auto i = static_cast<size_t>(d);
        if (t.sizes()[i] != 1 && t.strides()[i] != step) return t.numel() == 0;
        step *= t.sizes()[i];
    }
    return true;
}

void check_exportable(const Tensor& t, const char* op) {
    RL_CHECK(
        !(t.requires_grad() && grad_mode()), throw_buffer,
        "%s: this tensor requires grad, and writes by other libraries cannot be recorded\nhint: use detach()",
        op);
    RL_CHECK(t.device().type == DeviceType::CPU, throw_buffer,
             "%s: this tensor is on %s, but only CPU memory can be shared\nhint: use cpu() first", op,
             name(t.device()).c_str());
    require_values(op, t);
    RL_CHECK(format_of(t.dtype()), throw_buffer,
             "%s: Python and NumPy have no dtype %s\nhint: use float() first", op, name(t.dtype()));
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    view->obj = nullptr;
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    // After this error NumPy calls __array__ instead, which the class of the tensor can override.
    RL_CHECK(!has_own_override(self), throw_buffer,
             "buffer: %s defines __torch_function__, which a buffer would bypass\n"
             "hint: use as_subclass(torch.Tensor) first",
             Py_TYPE(self)->tp_name);
    check_exportable(t, "buffer");
    Storage* storage = t.impl()->storage();
    RL_CHECK((flags & PyBUF_WRITABLE) != PyBUF_WRITABLE || !storage->read_only(), throw_buffer,
             "buffer: this tensor is read-only, but a writable buffer was requested\nhint: clone() it first");
    bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    bool wants_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || !wants_strides;
    bool wants_f = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
    bool wants_any = (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
    bool fits = wants_c   ? t.is_contiguous()
                : wants_f ? fortran_contiguous(t)
                          : !wants_any || t.is_contiguous() || fortran_contiguous(t);
    RL_CHECK(fits, throw_buffer,
             "buffer: contiguous memory was requested, but this tensor has shape %s and strides %s\n"
             "hint: use contiguous() first",
             to_string(t.sizes()).c_str(), to_string(t.strides()).c_str());

    auto n = static_cast<size_t>(t.dim());
    auto* exported = static_cast<Exported*>(PyMem_Malloc(sizeof(Exported) + 2 * n * sizeof(Py_ssize_t)));
    RL_CHECK(exported, throw_out_of_memory, "buffer: out of memory");
    new (&exported->storage) Ref<Storage>(Ref<Storage>::share(storage));
    storage->add_export();
    auto item = static_cast<Py_ssize_t>(itemsize(t.dtype()));
    for (size_t d = 0; d < n; ++d) {
        exported->dims[d] = t.sizes()[d];
        exported->dims[n + d] = t.strides()[d] * item;
    }
    static char nothing[1];
    void* data = t.impl()->data();
    view->buf = data ? data : nothing;
    view->obj = Py_NewRef(self);
    view->len = t.numel() * item;
    view->itemsize = item;
    view->readonly = storage->read_only();
    view->ndim = static_cast<int>(n);
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(t.dtype())) : nullptr;
    view->shape = flags & PyBUF_ND ? exported->dims : nullptr;
    view->strides = wants_strides ? exported->dims + n : nullptr;
    view->suboffsets = nullptr;
    view->internal = exported;
    return 0;
    RL_PY_CATCH_INT
}

void release_buffer(PyObject*, Py_buffer* view) {
    auto* exported = static_cast<Exported*>(view->internal);
    exported->storage->drop_export();
    exported->storage.~Ref<Storage>();
    PyMem_Free(exported);
}

// --- import: buffers as tensors ---

class Buffer {
  public:
    explicit Buffer(PyObject* o) {
        if (PyObject_GetBuffer(o, &view_, PyBUF_FULL_RO) < 0) throw PythonError();
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    const Py_buffer& operator*() const { return view_; }
    const Py_buffer* operator->() const { return &view_; }
    /// Moves the buffer to the heap. The moved buffer must be released by `release_owner`.
    Py_buffer* move_out() {
        auto* moved = new Py_buffer(view_);
        view_.obj = nullptr;  // so that the destructor of `view` releases nothing
        return moved;
    }

  private:
    Py_buffer view_;
};

void release_owner(void* context, void*, size_t) {
    run_with_gil(
        [](void* c) {
            auto* view = static_cast<Py_buffer*>(c);
            PyBuffer_Release(view);
            delete view;
        },
        context);
}

std::string dtype_text(PyObject* array, const Py_buffer& view) {
    std::string text = std::string("elements of format '") + (view.format ? view.format : "B") + "'";
    Object dtype = Object::borrow(nullptr);
    if (PyObject* d = PyObject_GetAttrString(array, "dtype")) {
        Object owner = Object::steal(d);
        if (PyObject* s = PyObject_Str(d)) {
            Object text_owner = Object::steal(s);
            text = std::string("dtype ") + PyUnicode_AsUTF8(s);
        }
    }
    PyErr_Clear();
    return text;
}

// Returns the dtype of a buffer's elements. Sets `swapped` if their byte order is not the machine's.
DType element_type(PyObject* array, const Py_buffer& view, bool& swapped, const char* op) {
    const char* format = view.format ? view.format : "B";
    char order = '@';
    if (*format && std::strchr("@=<>!", *format)) order = *format++;
    swapped = (order == '>' || order == '!') && view.itemsize > 1;
    bool complex = *format == 'Z';
    if (complex) ++format;
    if (format[0] && !format[1]) {
        auto pick = [&](std::initializer_list<DType> candidates) -> std::optional<DType> {
            for (DType t : candidates)
                if (static_cast<Py_ssize_t>(itemsize(t)) == view.itemsize) return t;
            return std::nullopt;
        };
        std::optional<DType> found;
        if (complex)
            found = std::strchr("fd", *format) ? pick({DType::Complex64, DType::Complex128}) : std::nullopt;
        else if (*format == '?') found = DType::Bool;
        else if (std::strchr("bhilqn", *format))
            found = pick({DType::Int8, DType::Int16, DType::Int32, DType::Int64});
        else if (std::strchr("BHILQN", *format))
            found = pick({DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64});
        else if (std::strchr("efd", *format)) found = pick({DType::Float16, DType::Float32, DType::Float64});
        if (found) return *found;
    }
    throw_type(
        "%s: no tensor dtype corresponds to %s\n"
        "hint: convert the array to bool, an integer type, float16, float32 or float64 first",
        op, dtype_text(array, view).c_str());
}

// Copies the elements one by one, for any strides, alignment and byte order.
void copy_elements(const Py_buffer& view, int d, const char* from, bool swapped, char*& to) {
    if (d == view.ndim) {
        for (Py_ssize_t b = 0; b < view.itemsize; ++b) to[b] = from[swapped ? view.itemsize - 1 - b : b];
        to += view.itemsize;
        return;
    }
    for (Py_ssize_t i = 0; i < view.shape[d]; ++i)
        copy_elements(view, d + 1, from + i * view.strides[d], swapped, to);
}

Tensor copy_of(const Py_buffer& view, IntList sizes, DType dtype, bool swapped) {
    RL_CHECK(
        !swapped || !is_complex(dtype), throw_not_implemented,
        "tensor(data): complex numbers must be in the byte order of this machine\nhint: convert them with array.astype(array.dtype.newbyteorder('='))");
    Tensor out = make_tensor(sizes, dtype);
    char* to = static_cast<char*>(out.impl()->data());
    if (out.numel()) copy_elements(view, 0, static_cast<const char*>(view.buf), swapped, to);
    return out;
}

}  // namespace

bool is_numpy_array(PyObject* o) {
    static PyObject* type = nullptr;  // borrowed from NumPy, which is never unloaded
    if (!type) {
        PyObject* numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");  // borrowed
        if (!numpy) return false;
        type = PyObject_GetAttrString(numpy, "ndarray");
        if (!type) {  // NumPy is only partly imported
            PyErr_Clear();
            return false;
        }
    }
    return PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(type));
}

Tensor from_array(PyObject* array, ArrayCopy copy, const char* op) {
    run_waiting_releases();
    if (is_tensor(array)) return unwrap(array);
    if (!PyObject_CheckBuffer(array))
        throw_type("%s: needs an array or another object with a buffer, not %s", op, Py_TYPE(array)->tp_name);
    std::optional<Buffer> held;
    try {
        held.emplace(array);
    } catch (const PythonError&) {
        // NumPy's dates and structured types have no buffer format.
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw;
        PyErr_Clear();
        throw_type("%s: no tensor dtype corresponds to %s", op, dtype_text(array, Py_buffer{}).c_str());
    }
    Buffer& view = *held;
    RL_CHECK(!view->suboffsets, throw_buffer, "%s: buffers of pointers are not supported", op);
    bool swapped = false;
    DType dtype = element_type(array, *view, swapped, op);

    int64_t sizes[kMaxDims], strides[kMaxDims];
    auto n = static_cast<size_t>(view->ndim);
    bool negative = false, uneven = false;
    for (size_t d = 0; d < n; ++d) {
        sizes[d] = view->shape[d];
        strides[d] = view->strides[d] / view->itemsize;
        negative |= view->strides[d] < 0 && sizes[d] > 1;
        uneven |= view->strides[d] % view->itemsize != 0 && sizes[d] > 1;
        if (sizes[d] <= 1) strides[d] = strides[d] < 0 ? 0 : strides[d];
    }
    uneven |=
        reinterpret_cast<uintptr_t>(view->buf) % itemsize(is_complex(dtype) ? DType::Float32 : dtype) != 0;
    IntList shape(sizes, n);
    if (copy == ArrayCopy::Never) {
        RL_CHECK(!swapped, throw_value,
                 "%s: the array's elements are not in the byte order of this machine (%s)\n"
                 "hint: convert it with array.astype(array.dtype.newbyteorder('='))",
                 op, dtype_text(array, *view).c_str());
        RL_CHECK(!negative, throw_value,
                 "%s: the array has a negative stride, but tensors cannot have negative strides\n"
                 "hint: copy it with array.copy()",
                 op);
        RL_CHECK(!uneven, throw_value,
                 "%s: the array's elements are not aligned to their size\n"
                 "hint: copy it with array.copy()",
                 op);
    }
    bool as_is = !swapped && !negative && !uneven;
    if (!as_is) return copy_of(*view, shape, dtype, swapped);

    // An empty array may have any address. Its tensor has no memory.
    IntList steps(strides, n);
    int64_t extent = view->len ? 1 : 0;
    for (size_t d = 0; d < n && view->len; ++d) extent += (sizes[d] - 1) * strides[d];
    auto nbytes = static_cast<size_t>(extent) * itemsize(dtype);
    bool read_only = view->readonly;
    void* data = nbytes ? view->buf : nullptr;
    Tensor t =
        make_over(Storage::wrap(data, nbytes, Device{}, StorageKind::Foreign, release_owner, view.move_out()),
                  shape, steps, 0, dtype);
    if (copy == ArrayCopy::Always) {
        Tensor out = make_tensor(shape, dtype);
        copy_into(out, t);
        return out;
    }
    if (read_only) t.impl()->storage()->set_read_only();
    return t;
}

namespace {

PyObject* as_numpy(PyObject* self, const char* op) {
    const Tensor& t = unwrap(self);
    RL_CHECK(!is_sparse(t), throw_type, "%s: NumPy has no tensors of layout %s\nhint: use to_dense() first",
             op, layout_name(t));
    require_values(op, t);
    RL_CHECK(
        !(t.requires_grad() && grad_mode()), throw_runtime,
        "%s: this tensor requires grad, but NumPy's operations are not recorded\nhint: use detach().numpy(), or "
        "numpy(force=True)",
        op);
    RL_CHECK(t.device().type == DeviceType::CPU, throw_type,
             "%s: this tensor is on %s, but NumPy supports only CPU memory\n"
             "hint: use cpu() first, or numpy(force=True)",
             op, name(t.device()).c_str());
    RL_CHECK(format_of(t.dtype()), throw_type, "%s: NumPy has no dtype %s\nhint: use float() first", op,
             name(t.dtype()));
    static constinit Lookup asarray{"numpy", "asarray"};  // NumPy is imported when it is first needed
    return PyObject_CallOneArg(asarray.get(), self);
}

PyObject* method_numpy(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr ArgSpec specs[] = {
        {"self", nullptr, ArgType::Tensor, 0, 0},
        {"force", nullptr, ArgType::Bool, 0, ArgSpec::kDefaulted | ArgSpec::kKeywordOnly}};
    static constexpr Signature signature{"numpy(*, bool force=False) -> ndarray", specs, 2, 0};
    if (nargs == 0 && !kwnames) return as_numpy(self, "numpy()");
    Parser p;
    p.parse("numpy", &signature, 1, self, args, nargs, kwnames);
    if (!p.has(1) || !p.boolean(1)) return as_numpy(self, "numpy()");
    Object plain = Object::steal(PyObject_CallMethod(self, "detach", nullptr));
    if (unwrap(self).device().type != DeviceType::CPU)
        plain = Object::steal(PyObject_CallMethod(plain.get(), "cpu", nullptr));
    return as_numpy(plain.get(), "numpy(force)");
    RL_PY_CATCH
}

// __array__(dtype=None, copy=None): called by NumPy if the buffer is refused or does not suffice.
PyObject* method_array(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"dtype", "copy", nullptr};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype, &copy))
        return nullptr;
    RL_PY_TRY
    Object array = Object::steal(as_numpy(self, "__array__()"));
    if (dtype == Py_None && copy != Py_True) return array.release();
    if (dtype == Py_None) return PyObject_CallMethod(array.get(), "copy", nullptr);
    int always = copy == Py_True;
    Object method = Object::steal(PyObject_GetAttrString(array.get(), "astype"));
    Object positional = Object::steal(PyTuple_Pack(1, dtype));
    Object keywords = Object::steal(Py_BuildValue("{s:O}", "copy", always ? Py_True : Py_False));
    Object converted = Object::steal(PyObject_Call(method.get(), positional.get(), keywords.get()));
    RL_CHECK(copy != Py_False || converted.get() == array.get(), throw_value,
             "__array__(dtype, copy): conversion to another dtype needs a copy, which copy=False forbids");
    return converted.release();
    RL_PY_CATCH
}

// Converts the result of a NumPy function that was called with a tensor.
PyObject* method_array_wrap(PyObject*, PyObject* args) {
    PyObject *array, *context = nullptr, *scalar = nullptr;
    if (!PyArg_ParseTuple(args, "O|OO:__array_wrap__", &array, &context, &scalar)) return nullptr;
    RL_PY_TRY return wrap(from_array(array, ArrayCopy::IfNeeded, "__array_wrap__"));
    RL_PY_CATCH
}

// from_numpy(ndarray)
PyObject* from_numpy(PyObject*, PyObject* array) {
    RL_PY_TRY
    RL_CHECK(is_numpy_array(array), throw_type, "from_numpy(ndarray): must be a numpy.ndarray, not %s",
             Py_TYPE(array)->tp_name);
    return wrap(from_array(array, ArrayCopy::Never, "from_numpy(ndarray)"));
    RL_PY_CATCH
}

// _from_array(object, copy): with None, copies only if necessary.
PyObject* from_array_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 2, throw_type, "_from_array takes 2 arguments");
    auto copy = args[1] == Py_None   ? ArrayCopy::IfNeeded
                : args[1] == Py_True ? ArrayCopy::Always
                                     : ArrayCopy::Never;
    return wrap(from_array(args[0], copy));
    RL_PY_CATCH
}

// frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)
PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
    PyObject *object, *dtype_object = nullptr;
    long long count = -1, offset = 0;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(names), &object,
                                     &dtype_object, &count, &offset, &requires_grad))
        return nullptr;
    RL_PY_TRY
    run_waiting_releases();
    DType dtype;
    RL_CHECK(dtype_object, throw_type, "frombuffer(): missing argument 'dtype'");
    RL_CHECK(to_dtype(dtype_object, dtype), throw_type, "frombuffer(dtype): must be a dtype, not %s",
             Py_TYPE(dtype_object)->tp_name);
    RL_CHECK(PyObject_CheckBuffer(object), throw_value,
             "frombuffer(buffer): %s does not support the buffer protocol", Py_TYPE(object)->tp_name);
    auto* view = new Py_buffer;
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0) {
        delete view;
        throw PythonError();
    }
    void* data = static_cast<char*>(view->buf) + offset;
    auto total = static_cast<int64_t>(view->len);
    bool read_only = view->readonly;
    auto item = static_cast<int64_t>(itemsize(dtype));
    // From here on the storage releases the buffer.
    auto storage = Storage::wrap(nullptr, 0, Device{}, StorageKind::Foreign, release_owner, view);
    RL_CHECK(total > 0, throw_value,
             "frombuffer(buffer): must have at least one byte, but the buffer is empty");
    RL_CHECK(count != 0, throw_value, "frombuffer(count): must not be 0");
    RL_CHECK(offset >= 0 && offset < total, throw_value,
             "frombuffer(offset): must be at least 0 and below the buffer's %lld bytes, got %lld",
             (long long)total, offset);
    RL_CHECK(count > 0 || (total - offset) % item == 0, throw_value,
             "frombuffer(buffer): the length after the offset, %lld bytes, is not a multiple of the element "
             "size, %lld bytes for %s",
             (long long)(total - offset), (long long)item, name(dtype));
    int64_t n = count < 0 ? (total - offset) / item : count;
    RL_CHECK(n <= (total - offset) / item, throw_value,
             "frombuffer(count): %lld elements of %s from offset %lld need more than the buffer's %lld bytes",
             (long long)n, name(dtype), offset, (long long)total);
    RL_CHECK(reinterpret_cast<uintptr_t>(data) % itemsize(is_complex(dtype) ? DType::Float32 : dtype) == 0,
             throw_value,
             "frombuffer(offset): the address of the elements is not a multiple of the element size, %lld "
             "bytes for %s",
             (long long)item, name(dtype));
    storage = Storage::wrap(
        data, static_cast<size_t>(n * item), Device{}, StorageKind::Foreign,
        [](void* owner, void*, size_t) { Ref<Storage>::adopt(static_cast<Storage*>(owner)); },
        storage.release());
    if (read_only) storage->set_read_only();
    int64_t one = 1;
    Tensor t = make_over(std::move(storage), IntList(&n, 1), IntList(&one, 1), 0, dtype);
    if (requires_grad) t.set_requires_grad(true);
    return wrap(std::move(t));
    RL_PY_CATCH
}

// _crc32(data, crc=0)
PyObject* crc32_py(PyObject*, PyObject* args) {
    Py_buffer data;
    unsigned crc = 0;
    if (!PyArg_ParseTuple(args, "y*|I:_crc32", &data, &crc)) return nullptr;
    RL_PY_TRY
    struct Release {
        ~Release() { PyBuffer_Release(view); }
        Py_buffer* view;
    } release{&data};
    const auto size = static_cast<size_t>(data.len);
    if (size < 1 << 14) return PyLong_FromUnsignedLong(rushlight::crc32(crc, data.buf, size));
    {
        WithoutGil nogil;
        crc = rushlight::crc32(crc, data.buf, size);
    }
    return PyLong_FromUnsignedLong(crc);
    RL_PY_CATCH
}

#define RL_KEYWORDS(...) \
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(__VA_ARGS__)), METH_VARARGS | METH_KEYWORDS
#define RL_FAST(...) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(__VA_ARGS__))

PyMethodDef functions[] = {{"from_numpy", from_numpy, METH_O, docstrings::from_numpy_},
                           {"frombuffer", RL_KEYWORDS(frombuffer), docstrings::frombuffer_},
                           {"_from_array", RL_FAST(from_array_py), METH_FASTCALL, nullptr},
                           {"_crc32", crc32_py, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyBufferProcs tensor_buffer{get_buffer, release_buffer};

PyMethodDef buffer_methods[] = {
    {"numpy", RL_FAST(Seen<"numpy">::of<method_numpy>), METH_FASTCALL | METH_KEYWORDS,
     "numpy($self, *, force=False)\n--\n\nReturn a NumPy array that shares the memory. With `force=True` the tensor may"
     " require grad or be on another device than the CPU, and the array may be a copy."},
    {"__array__", RL_KEYWORDS(Seen<"__array__">::of<method_array>), nullptr},
    {"__array_wrap__", Seen<"__array_wrap__">::of_tuple<method_array_wrap>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

int add_buffers(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
