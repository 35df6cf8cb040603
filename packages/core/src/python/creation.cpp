// tensor(): from nested Python sequences and numbers.
#include <cstring>

#include "python/arguments.h"
#include "python/results.h"
#include "rushlight/dispatch.h"
#include "rushlight/half.h"

namespace rushlight::python {
namespace {

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

// One pass to find shape and dtype, one to fill.
struct Scan {
    std::vector<int64_t> sizes;
    bool seen = false;
    DType dtype = DType::Bool;

    void number(PyObject* o) {
        DType t;
        if (is_tensor(o)) {
            const Tensor& tensor = unwrap(o);
            RL_CHECK(tensor.numel() == 1, throw_value,
                     "tensor(data): a tensor inside a sequence must have one element, this one has shape %s\n"
                     "hint: torch.stack joins tensors",
                     to_string(tensor.sizes()).c_str());
            t = tensor.dtype();
        } else {
            Scalar s;
            RL_CHECK(to_scalar(o, s), throw_type, "tensor(data): cannot make an element from %s",
                     Py_TYPE(o)->tp_name);
            t = s.is_floating() ? default_dtype() : s.dtype();
        }
        dtype = seen ? promote(dtype, t) : t;
        seen = true;
    }

    void shape(PyObject* o) {
        while (is_sequence(o)) {
            RL_CHECK(sizes.size() < kMaxDims, throw_value, "tensor(data): nested deeper than %d sequences", kMaxDims);
            Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
            sizes.push_back(n);
            if (n == 0) return;
            o = PySequence_Fast_GET_ITEM(o, 0);
        }
    }

    void check(PyObject* o, size_t depth) {
        if (depth == sizes.size()) {
            RL_CHECK(!is_sequence(o), throw_value, "tensor(data): a sequence stands at depth %zu where a number is needed",
                     depth);
            return number(o);
        }
        RL_CHECK(is_sequence(o), throw_type, "tensor(data): expected a sequence of length %lld at dimension %zu, got %s",
                 (long long)sizes[depth], depth, Py_TYPE(o)->tp_name);
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        RL_CHECK(n == sizes[depth], throw_value,
                 "tensor(data): expected a sequence of length %lld at dimension %zu, got one of length %lld",
                 (long long)sizes[depth], depth, (long long)n);
        for (Py_ssize_t i = 0; i < n; ++i) check(PySequence_Fast_GET_ITEM(o, i), depth + 1);
    }
};

template <class T>
T element(PyObject* o) {
    Scalar s;
    if (is_tensor(o)) s = item(unwrap(o));
    else RL_CHECK(to_scalar(o, s), throw_type, "tensor(data): cannot make an element from %s", Py_TYPE(o)->tp_name);
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        return T(s.to<float>());
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (!s.is_floating()) {
            int64_t v = s.to<int64_t>();
            RL_CHECK(static_cast<int64_t>(static_cast<T>(v)) == v, throw_runtime,
                     "tensor(data): %lld does not fit the dtype", (long long)v);
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

Tensor from_sequence(PyObject* data, std::optional<DType> dtype) {
    Scan scan;
    scan.shape(data);
    scan.check(data, 0);
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
        case DType::Float16: fill(data, 0, n, out.data<Half>()); break;
        case DType::BFloat16: fill(data, 0, n, out.data<BFloat16>()); break;
        case DType::Float32: fill(data, 0, n, out.data<float>()); break;
        case DType::Float64: fill(data, 0, n, out.data<double>()); break;
        default: throw_not_implemented("tensor(data, dtype): %s is not supported yet", name(t));
    }
    return out;
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
    RL_CHECK(to_dtype(d, t), throw_type, "set_default_dtype(d): must be a dtype, not %s", Py_TYPE(d)->tp_name);
    set_default_dtype(t);
    Py_RETURN_NONE;
    RL_PY_CATCH
}

PyMethodDef functions[] = {
    {"_from_sequence", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_sequence_py)), METH_FASTCALL,
     nullptr},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "The dtype of floating-point numbers, float32 at first."},
    {"set_default_dtype", set_default_dtype_py, METH_O, "Sets the dtype of floating-point numbers."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_creation(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
