// tensor() for nested Python sequences and numbers. All other data is converted by rushlight_core._creation.
#include <cmath>
#include <cstring>

#include "ops/element_types.h"
#include "python/arguments.h"
#include "python/conversions.h"
#include "python/default_device.h"
#include "python/docstrings.h"
#include "python/results.h"
#include "rushlight/dispatch.h"
#include "rushlight/half.h"

namespace rushlight::python {
namespace {

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

// Thrown for an element that is neither a number nor a list. It may be an array, or a sequence of another type.
class UnknownElement : public Error {
  public:
    explicit UnknownElement(PyObject* o)
        : Error(ErrorKind::Type,
                std::string("tensor(data): cannot make an element from ") + Py_TYPE(o)->tp_name) {}
};

// NumPy's numbers have their own dtype; Python's floats have the default dtype.
DType number_dtype(PyObject* o, Scalar s) {
    if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) ||
        std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) != 0)
        return s.is_floating()  ? default_dtype()
               : s.is_complex() ? complex_dtype(default_dtype())
                                : s.dtype();
    const char* type = Py_TYPE(o)->tp_name + 6;
    for (int i = 0; i < kNumDTypes; ++i)
        if (std::strcmp(type, name(static_cast<DType>(i))) == 0) return static_cast<DType>(i);
    return s.is_floating() ? DType::Float64 : s.dtype();
}

// The first of two passes: finds the shape and dtype. The second pass fills the tensor.
struct Scan {
    std::vector<int64_t> sizes;
    bool seen = false;
    bool wide = false;  // integers may be larger than int64
    DType dtype = DType::Bool;

    void number(PyObject* o) {
        DType t;
        if (is_tensor(o)) {
            const Tensor& tensor = unwrap(o);
            RL_CHECK(tensor.numel() == 1, throw_value,
                     "tensor(data): a tensor inside a sequence must have one element, this one has shape %s\n"
                     "hint: use torch.stack to join tensors",
                     to_string(tensor.sizes()).c_str());
            t = tensor.dtype();
        } else {
            Scalar s;
            if (wide && PyLong_Check(o)) s = Scalar(0);
            else if (!to_scalar(o, s)) throw UnknownElement(o);
            t = number_dtype(o, s);
        }
        dtype = seen ? promote(dtype, t) : t;
        seen = true;
    }

    void shape(PyObject* o) {
        while (is_sequence(o)) {
            RL_CHECK(sizes.size() < kMaxDims, throw_value, "tensor(data): nested deeper than %d sequences",
                     kMaxDims);
            Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
            sizes.push_back(n);
            if (n == 0) return;
            o = PySequence_Fast_GET_ITEM(o, 0);
        }
    }

    void check(PyObject* o, size_t depth) {
        if (depth == sizes.size()) {
            RL_CHECK(!is_sequence(o), throw_value,
                     "tensor(data): expected a number at depth %zu, got a sequence", depth);
            return number(o);
        }
        Scalar s;
        if (!is_sequence(o) && !to_scalar(o, s) && !is_tensor(o)) throw UnknownElement(o);
        RL_CHECK(is_sequence(o), throw_type,
                 "tensor(data): expected a sequence of length %lld at dimension %zu, got %s",
                 (long long)sizes[depth], depth, Py_TYPE(o)->tp_name);
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        RL_CHECK(n == sizes[depth], throw_value,
                 "tensor(data): expected a sequence of length %lld at dimension %zu, got one of length %lld",
                 (long long)sizes[depth], depth, (long long)n);
        for (Py_ssize_t i = 0; i < n; ++i) check(PySequence_Fast_GET_ITEM(o, i), depth + 1);
    }
};

// Converts an integer of any size; rounds it if it does not fit 64 bits.
Scalar any_integer(PyObject* o) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return Scalar(static_cast<int64_t>(v));
    const double rounded = PyLong_AsDouble(o);
    if (rounded == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        throw_value("tensor(data): an integer is too large for a floating-point number");
    }
    return Scalar(rounded);
}

template <class T>
T element(PyObject* o) {
    Scalar s;
    if constexpr (std::is_same_v<T, uint64_t>) {
        if (PyLong_Check(o)) {
            unsigned long long v = PyLong_AsUnsignedLongLong(o);
            if (v == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
                PyErr_Clear();
                throw_runtime("tensor(data): an integer does not fit uint64");
            }
            return v;
        }
    }
    if (is_tensor(o)) s = item(unwrap(o));
    else if (!std::is_integral_v<T> && PyLong_Check(o)) s = any_integer(o);
    else if (!to_scalar(o, s)) throw UnknownElement(o);
    if constexpr (!kIsComplex<T> && !std::is_same_v<T, bool>)
        RL_CHECK(!s.is_complex(), throw_type,
                 "tensor(data): a complex number cannot be converted to dtype %s", name(DTypeOf<T>::value));
    if constexpr (std::is_class_v<T> && !kIsComplex<T>) {  // half types and float8
        return T(s.to<float>());
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (s.is_floating()) {
            double v = std::trunc(s.to<double>());
            constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
            RL_CHECK(v >= static_cast<double>(std::numeric_limits<T>::min()) && v < kEnd, throw_runtime,
                     "tensor(data): %g does not fit dtype %s", s.to<double>(), name(DTypeOf<T>::value));
        } else {
            auto v = s.to<int64_t>();
            RL_CHECK(static_cast<int64_t>(static_cast<T>(v)) == v && (v >= 0 || std::is_signed_v<T>),
                     throw_runtime, "tensor(data): %lld does not fit dtype %s", (long long)v,
                     name(DTypeOf<T>::value));
        }
        return s.to<T>();
    } else {
        return s.to<T>();
    }
}

template <class T>
T* fill(PyObject* o, size_t depth, size_t ndim, T* out) {
    if (depth == ndim) {
        *out = element<T>(o);
        return out + 1;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
        out = fill(PySequence_Fast_GET_ITEM(o, i), depth + 1, ndim, out);
    return out;
}

}  // namespace

Tensor from_sequence(PyObject* data, std::optional<DType> dtype) {
    Scan scan;
    scan.wide = dtype && (dtype == DType::UInt64 || is_differentiable(*dtype));
    scan.shape(data);
    try {
        scan.check(data, 0);
    } catch (const IntegerOverflow&) {
        throw_value("tensor(data): an integer does not fit 64 bits\nhint: pass a floating-point dtype");
    }
    DType t = dtype ? *dtype : scan.seen ? scan.dtype : default_dtype();
    Tensor out = make_tensor(scan.sizes, t);
    size_t n = scan.sizes.size();
    switch (t) {
        case DType::Bool: fill(data, 0, n, out.data<bool>()); break;
        case DType::UInt8: fill(data, 0, n, out.data<uint8_t>()); break;
        case DType::Int8: fill(data, 0, n, out.data<int8_t>()); break;
        case DType::Int16: fill(data, 0, n, out.data<int16_t>()); break;
        case DType::Int32: fill(data, 0, n, out.data<int32_t>()); break;
        case DType::Int64: fill(data, 0, n, out.data<int64_t>()); break;
        case DType::UInt16: fill(data, 0, n, out.data<uint16_t>()); break;
        case DType::UInt32: fill(data, 0, n, out.data<uint32_t>()); break;
        case DType::UInt64: fill(data, 0, n, out.data<uint64_t>()); break;
        case DType::Float16: fill(data, 0, n, out.data<Half>()); break;
        case DType::BFloat16: fill(data, 0, n, out.data<BFloat16>()); break;
        case DType::Float32: fill(data, 0, n, out.data<float>()); break;
        case DType::Float64: fill(data, 0, n, out.data<double>()); break;
        case DType::Complex64: fill(data, 0, n, out.data<Complex<float>>()); break;
        case DType::Complex128: fill(data, 0, n, out.data<Complex<double>>()); break;
        case DType::Float8E4M3FN: fill(data, 0, n, out.data<Float8E4M3FN>()); break;
        case DType::Float8E5M2: fill(data, 0, n, out.data<Float8E5M2>()); break;
        case DType::Float8E4M3FNUZ: fill(data, 0, n, out.data<Float8E4M3FNUZ>()); break;
        case DType::Float8E5M2FNUZ: fill(data, 0, n, out.data<Float8E5M2FNUZ>()); break;
        case DType::Float8E8M0FNU: fill(data, 0, n, out.data<Float8E8M0FNU>()); break;
    }
    return out;
}

namespace {

// Reads the arguments of a function with few parameters by position and name. Omitted arguments become None.
template <size_t n>
void read_arguments(const char* function, const char* const (&names)[n], Py_ssize_t most_positional,
                    PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject* (&given)[n]) {
    RL_CHECK(nargs <= most_positional, throw_type,
             "%s(): takes at most %zd positional arguments, %zd were given", function, most_positional,
             nargs);
    for (size_t i = 0; i < n; ++i) given[i] = static_cast<Py_ssize_t>(i) < nargs ? args[i] : nullptr;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
        PyObject* key = PyTuple_GET_ITEM(kwnames, k);
        size_t i = 0;
        while (i < n && PyUnicode_CompareWithASCIIString(key, names[i]) != 0) ++i;
        RL_CHECK(i < n, throw_type, "%s(): got an unexpected keyword argument '%s'", function,
                 PyUnicode_AsUTF8(key));
        RL_CHECK(!given[i], throw_type, "%s(): got two values for argument '%s'", function, names[i]);
        given[i] = args[nargs + k];
    }
    RL_CHECK(given[0], throw_type, "%s(): missing argument '%s'", function, names[0]);
    for (size_t i = 1; i < n; ++i)
        if (!given[i]) given[i] = Py_None;
}

std::optional<DType> read_dtype(const char* function, PyObject* o) {
    if (o == Py_None) return std::nullopt;
    DType t;
    RL_CHECK(to_dtype(o, t), throw_type, "%s(dtype): must be a dtype or None, not %s", function,
             Py_TYPE(o)->tp_name);
    return t;
}

Device read_device(const char* function, PyObject* o) {
    Device device = default_device.value_or(Device{});
    RL_CHECK(o == Py_None || to_device(o, device), throw_type,
             "%s(device): must be a device, a str, an int or None, not %s", function, Py_TYPE(o)->tp_name);
    return device;
}

bool is_plain(PyObject* data) {
    return is_sequence(data) || PyFloat_Check(data) || PyLong_Check(data) || PyComplex_Check(data);
}

// Passes the call on to rushlight_core._creation, for data other than numbers and lists of numbers.
PyObject* slow_call(const char* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    Object module = Object::steal(PyImport_ImportModule("rushlight_core._creation"));
    Object python = Object::steal(PyObject_GetAttrString(module.get(), function));
    return PyObject_Vectorcall(python.get(), args, static_cast<size_t>(nargs), kwnames);
}

// tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)
PyObject* tensor_py(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory"};
    PyObject* given[5];
    read_arguments("tensor", names, 1, args, nargs, kwnames, given);
    auto dtype = read_dtype("tensor", given[1]);
    Device device = read_device("tensor", given[2]);
    int requires_grad = PyObject_IsTrue(given[3]), pin_memory = PyObject_IsTrue(given[4]);
    if (requires_grad < 0 || pin_memory < 0) return nullptr;
    if (is_plain(given[0]) && device.type == DeviceType::CPU && !pin_memory) {
        try {
            Tensor t = from_sequence(given[0], dtype);
            if (requires_grad) t.set_requires_grad(true);
            return wrap(std::move(t));
        } catch (const UnknownElement&) {  // for example, arrays in a list
        }
    }
    return slow_call("tensor", args, nargs, kwnames);
    RL_PY_CATCH
}

// as_tensor(data, dtype=None, device=None)
PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr const char* names[] = {"data", "dtype", "device"};
    PyObject* given[3];
    read_arguments("as_tensor", names, 3, args, nargs, kwnames, given);
    auto dtype = read_dtype("as_tensor", given[1]);
    Device device = read_device("as_tensor", given[2]);
    if (device.type == DeviceType::CPU) {
        if (is_numpy_array(given[0]) && !dtype)
            return wrap(from_array(given[0], ArrayCopy::IfNeeded, "as_tensor(data)"));
        if (is_tensor(given[0]) && given[2] == Py_None && (!dtype || *dtype == unwrap(given[0]).dtype()))
            return Py_NewRef(given[0]);
        try {
            if (is_plain(given[0])) return wrap(from_sequence(given[0], dtype));
        } catch (const UnknownElement&) {}
    }
    return slow_call("as_tensor", args, nargs, kwnames);
    RL_PY_CATCH
}

// _from_sequence(data, dtype): nested lists and tuples of numbers, or a number.
PyObject* from_sequence_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 2, throw_type, "_from_sequence takes 2 arguments");
    DType dtype;
    bool given = args[1] != Py_None;
    RL_CHECK(!given || to_dtype(args[1], dtype), throw_type, "tensor(dtype): must be a dtype, not %s",
             Py_TYPE(args[1])->tp_name);
    return wrap(from_sequence(args[0], given ? std::optional(dtype) : std::nullopt));
    RL_PY_CATCH
}
PyObject* get_default_dtype(PyObject*, PyObject*) { return wrap(default_dtype()); }
PyObject* set_default_dtype_py(PyObject*, PyObject* d) {
    RL_PY_TRY
    DType t;
    RL_CHECK(Py_TYPE(d) == DTypeType && to_dtype(d, t), throw_type,
             "set_default_dtype(d): must be a dtype, not %s", Py_TYPE(d)->tp_name);
    set_default_dtype(t);
    Py_RETURN_NONE;
    RL_PY_CATCH
}

PyMethodDef functions[] = {
    {"tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_py)),
     METH_FASTCALL | METH_KEYWORDS, docstrings::tensor_},
    {"as_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(as_tensor)),
     METH_FASTCALL | METH_KEYWORDS, docstrings::as_tensor_},
    {"_from_sequence", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_sequence_py)),
     METH_FASTCALL, nullptr},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, docstrings::get_default_dtype_},
    {"set_default_dtype", set_default_dtype_py, METH_O, docstrings::set_default_dtype_},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_creation(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
