// Methods and properties of Tensor that are not operators.
#include <algorithm>
#include <cstring>

#include "ops/copying.h"
#include "ops/memory_format.h"
#include "python/arguments.h"
#include "python/override.h"
#include "python/results.h"
#include "rushlight/batched.h"
#include "rushlight/dispatch.h"
#include "rushlight/float8.h"
#include "rushlight/gradients.h"
#include "rushlight/half.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/fill_.h"
#include "rushlight/ops/imag.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/site.h"
#include "rushlight/sparse.h"

namespace rushlight::python {

namespace {

// A number of 16 bits or less, which converts to float.
template <class T>
Scalar small_float(const void* p) {
    return Scalar(double{static_cast<float>(*static_cast<const T*>(p))});
}

Scalar element(const void* p, DType dtype) {
    switch (dtype) {
        case DType::Bool: return Scalar(*static_cast<const uint8_t*>(p) != 0);
        case DType::UInt8: return Scalar(int64_t{*static_cast<const uint8_t*>(p)});
        case DType::Int8: return Scalar(int64_t{*static_cast<const int8_t*>(p)});
        case DType::Int16: return Scalar(int64_t{*static_cast<const int16_t*>(p)});
        case DType::UInt16: return Scalar(int64_t{*static_cast<const uint16_t*>(p)});
        case DType::Int32: return Scalar(int64_t{*static_cast<const int32_t*>(p)});
        case DType::UInt32: return Scalar(int64_t{*static_cast<const uint32_t*>(p)});
        case DType::Int64: return Scalar(*static_cast<const int64_t*>(p));
        case DType::UInt64: {
            uint64_t v = *static_cast<const uint64_t*>(p);
            RL_CHECK(v <= static_cast<uint64_t>(INT64_MAX), throw_runtime,
                     "item(): %llu of dtype uint64 does not fit a signed integer of 64 bits",
                     (unsigned long long)v);
            return Scalar(static_cast<int64_t>(v));
        }
        case DType::Float16: return small_float<Half>(p);
        case DType::BFloat16: return small_float<BFloat16>(p);
        case DType::Float8E4M3FN: return small_float<Float8E4M3FN>(p);
        case DType::Float8E5M2: return small_float<Float8E5M2>(p);
        case DType::Float8E4M3FNUZ: return small_float<Float8E4M3FNUZ>(p);
        case DType::Float8E5M2FNUZ: return small_float<Float8E5M2FNUZ>(p);
        case DType::Float8E8M0FNU: return small_float<Float8E8M0FNU>(p);
        case DType::Float32: return Scalar(double{*static_cast<const float*>(p)});
        case DType::Float64: return Scalar(*static_cast<const double*>(p));
        case DType::Complex64: return Scalar(Complex<double>(*static_cast<const Complex<float>*>(p)));
        case DType::Complex128: return Scalar(*static_cast<const Complex<double>*>(p));
    }
    return Scalar();  // not reached, since the switch handles every dtype
}

}  // namespace

Scalar item(const Tensor& t) {
    RL_CHECK(t.numel() == 1, throw_runtime,
             "item(): a tensor of shape %s with %lld elements cannot be converted to a Python number\n"
             "hint: use tolist(), or index it first",
             to_string(t.sizes()).c_str(), (long long)t.numel());
    RL_CHECK(t.device().type != DeviceType::Meta, throw_runtime,
             "item(): a tensor on the meta device has no values");
    if (is_sparse(t)) return item(to_dense(t));
    require_values("item()", t);
    if (t.device().type != DeviceType::CPU) {
        Tensor host = make_tensor({}, t.dtype());
        copy_into(host, t);
        return item(host);
    }
    return element(t.impl()->data(), t.dtype());
}

namespace {

// Converts an element to a Python number. uint64 is the only dtype with values that do not fit a Scalar.
PyObject* number(const void* p, DType dtype) {
    if (dtype == DType::UInt64) return PyLong_FromUnsignedLongLong(*static_cast<const uint64_t*>(p));
    return wrap(element(p, dtype));
}
PyObject* number(const Tensor& t) {
    if (is_sparse(t) && t.numel() == 1) return number(to_dense(t));
    require_values("item()", t);
    bool wide = t.dtype() == DType::UInt64 && t.numel() == 1 && t.device().type == DeviceType::CPU;
    return wide ? number(t.impl()->data(), t.dtype()) : wrap(item(t));
}

}  // namespace

int tensor_bool(PyObject* self) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    if (has_override(self)) [[unlikely]] {
        if (PyObject* answer = answer_by_class({"__bool__", nullptr}, self)) {
            Object value = Object::steal(answer);
            return PyObject_IsTrue(answer);
        }
    }
    RL_CHECK(t.numel() == 1, throw_runtime,
             "bool(): the truth of a tensor of shape %s is ambiguous\nhint: use any() or all()",
             to_string(t.sizes()).c_str());
    if (!is_sparse(t)) require_values("bool()", t);
    return item(t).to<bool>();
    RL_PY_CATCH_INT
}
// float(t) and similar conversions raise ValueError where item() raises RuntimeError.
static void require_one_element(const char* what, const Tensor& t) {
    RL_CHECK(t.numel() == 1, throw_value,
             "%s(): a tensor of shape %s with %lld elements cannot be converted to a Python number\n"
             "hint: use tolist(), or index it first",
             what, to_string(t.sizes()).c_str(), (long long)t.numel());
}

// Converts the value of a tensor of one element. A complex number without an imaginary part becomes its real part.
static Object real_number(const char* what, const Tensor& t) {
    require_one_element(what, t);
    if (!is_complex(t.dtype())) return Object::steal(number(t));
    const auto value = item(t).to<Complex<double>>();
    RL_CHECK(value.im == 0, throw_runtime, "%s(): the complex number %g%+gj has an imaginary part", what,
             value.re, value.im);
    return Object::steal(PyFloat_FromDouble(value.re));
}

PyObject* tensor_int(PyObject* self) {
    RL_PY_TRY
    return PyNumber_Long(real_number("int", unwrap(self)).get());
    RL_PY_CATCH
}
PyObject* tensor_float(PyObject* self) {
    RL_PY_TRY
    return PyNumber_Float(real_number("float", unwrap(self)).get());
    RL_PY_CATCH
}
PyObject* tensor_index(PyObject* self) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    RL_CHECK(is_integral(t.dtype(), true) && t.numel() == 1, throw_type,
             "only an integer tensor of one element can be an index, got %s of shape %s", name(t.dtype()),
             to_string(t.sizes()).c_str());
    Object value = Object::steal(number(t));
    return PyNumber_Long(value.get());
    RL_PY_CATCH
}

namespace {

Py_ssize_t length(PyObject* self) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    RL_CHECK(t.dim() > 0, throw_type, "len(): a 0-d tensor has no length");
    return t.sizes()[0];
    RL_PY_CATCH_INT
}

// The following functions convert the dtypes with most elements in programs without a Scalar for each element.
PyObject* python_number(bool v) { return Py_NewRef(v ? Py_True : Py_False); }
PyObject* python_number(int64_t v) { return PyLong_FromLongLong(v); }
PyObject* python_number(double v) { return PyFloat_FromDouble(v); }

// Fills a list with n numbers of type T, which are converted to type As. They are `step` bytes apart.
template <class T, class As>
bool fill_list(PyObject* list, const char* data, int64_t step, int64_t n) {
    for (int64_t i = 0; i < n; ++i, data += step) {
        PyObject* const value = python_number(static_cast<As>(*reinterpret_cast<const T*>(data)));
        if (value == nullptr) return false;
        PyList_SET_ITEM(list, i, value);
    }
    return true;
}

bool fill_list(PyObject* list, const char* data, int64_t step, int64_t n, DType dtype) {
    switch (dtype) {
        case DType::Bool: return fill_list<uint8_t, bool>(list, data, step, n);
        case DType::Int32: return fill_list<int32_t, int64_t>(list, data, step, n);
        case DType::Int64: return fill_list<int64_t, int64_t>(list, data, step, n);
        case DType::Float32: return fill_list<float, double>(list, data, step, n);
        case DType::Float64: return fill_list<double, double>(list, data, step, n);
        default:
            for (int64_t i = 0; i < n; ++i) {
                PyObject* const value = number(data + i * step, dtype);
                if (value == nullptr) return false;
                PyList_SET_ITEM(list, i, value);
            }
            return true;
    }
}

PyObject* tolist_of(const Tensor& t, int d, const char* data) {
    if (d == t.dim()) return number(data, t.dtype());
    const int64_t n = t.impl()->size(d);
    Object list = Object::steal(PyList_New(n));
    const int64_t step = t.impl()->stride(d) * static_cast<int64_t>(itemsize(t.dtype()));
    if (d + 1 == t.dim()) return fill_list(list.get(), data, step, n, t.dtype()) ? list.release() : nullptr;
    for (int64_t i = 0; i < n; ++i) {
        PyObject* const row = tolist_of(t, d + 1, data + i * step);
        if (row == nullptr) return nullptr;
        PyList_SET_ITEM(list.get(), i, row);
    }
    return list.release();
}

#define RL_METHOD(name) PyObject* name(PyObject* self, PyObject*)
#define RL_GETTER(name) PyObject* name(PyObject* self, void*)

RL_METHOD(method_item) {
    RL_PY_TRY return number(unwrap(self));
    RL_PY_CATCH
}
RL_METHOD(method_complex) {
    RL_PY_TRY
    require_one_element("complex", unwrap(self));
    const auto z = item(unwrap(self)).to<Complex<double>>();
    return PyComplex_FromDoubles(z.re, z.im);
    RL_PY_CATCH
}
RL_METHOD(method_tolist) {
    RL_PY_TRY
    Tensor t = unwrap(self);
    require_values("tolist()", t);
    if (t.device().type != DeviceType::CPU) {
        const Tensor here = make_tensor(t.sizes(), t.dtype());
        copy_into(here, t);
        t = here;
    }
    return tolist_of(t, 0, static_cast<const char*>(t.impl()->data()));
    RL_PY_CATCH
}
PyObject* method_size(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr ArgSpec specs[] = {{"self", nullptr, ArgType::Tensor, 0, 0},
                                        {"dim", nullptr, ArgType::OptInt, 0, ArgSpec::kDefaulted}};
    static constexpr Signature signature{"size(int? dim=None) -> Size or int", specs, 2, 0};
    Parser p;
    p.parse("size", &signature, 1, self, args, nargs, kwnames);
    auto dim = p.has(1) ? p.opt_integer(1) : std::nullopt;
    return dim ? wrap(unwrap(self).size(*dim)) : wrap_size(unwrap(self).sizes());
    RL_PY_CATCH
}
PyObject* method_stride(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr ArgSpec specs[] = {{"self", nullptr, ArgType::Tensor, 0, 0},
                                        {"dim", nullptr, ArgType::OptInt, 0, ArgSpec::kDefaulted}};
    static constexpr Signature signature{"stride(int? dim=None) -> tuple or int", specs, 2, 0};
    Parser p;
    p.parse("stride", &signature, 1, self, args, nargs, kwnames);
    const Tensor& t = unwrap(self);
    if (auto dim = p.has(1) ? p.opt_integer(1) : std::nullopt) {
        t.size(*dim);  // checks the range
        return wrap(t.strides()[static_cast<size_t>(*dim < 0 ? *dim + t.dim() : *dim)]);
    }
    Object tuple = Object::steal(PyTuple_New(t.dim()));
    for (int64_t d = 0; d < t.dim(); ++d) PyTuple_SET_ITEM(tuple.get(), d, wrap(t.strides()[d]));
    return tuple.release();
    RL_PY_CATCH
}
PyObject* method_is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    if (nargs == 0 && !kwnames) return PyBool_FromLong(t.is_contiguous());
    static constexpr ArgSpec specs[] = {{"self", nullptr, ArgType::Tensor, 0, 0},
                                        {"memory_format", nullptr, ArgType::Str, 0, ArgSpec::kDefaulted}};
    static constexpr Signature signature{"is_contiguous(str memory_format='contiguous') -> bool", specs, 2,
                                         0};
    Parser p;
    p.parse("is_contiguous", &signature, 1, self, args, nargs, kwnames);
    return PyBool_FromLong(has_format(t, memory_format("is_contiguous", p.string(1))));
    RL_PY_CATCH
}
PyObject* method_is_pinned(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr ArgSpec specs[] = {{"self", nullptr, ArgType::Tensor, 0, 0},
                                        {"device", nullptr, ArgType::OptDevice, 0, ArgSpec::kDefaulted}};
    static constexpr Signature signature{"is_pinned(device? device=None) -> bool", specs, 2, 0};
    Parser p;
    p.parse("is_pinned", &signature, 1, self, args, nargs, kwnames);
    return PyBool_FromLong(unwrap(self).impl()->storage()->kind() == StorageKind::Pinned);
    RL_PY_CATCH
}
RL_METHOD(method_is_signed) { return PyBool_FromLong(is_signed(unwrap(self).dtype())); }
RL_METHOD(method_get_device) {
    Device device = unwrap(self).device();
    return PyLong_FromLong(device.type == DeviceType::CPU ? -1 : device.index);
}
RL_METHOD(method_is_nonzero) {
    int truth = tensor_bool(self);
    return truth < 0 ? nullptr : PyBool_FromLong(truth);
}
PyObject* method_is_set_to(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr ArgSpec specs[] = {{"self", nullptr, ArgType::Tensor, 0, 0},
                                        {"tensor", nullptr, ArgType::Tensor, 0, 0}};
    static constexpr Signature signature{"is_set_to(Tensor tensor) -> bool", specs, 2, 0};
    Parser p;
    p.parse("is_set_to", &signature, 1, self, args, nargs, kwnames);
    TensorImpl *a = unwrap(self).impl(), *b = p.tensor(1).impl();
    return PyBool_FromLong(a->storage() == b->storage() && a->offset() == b->offset() &&
                           std::ranges::equal(a->sizes(), b->sizes()) &&
                           std::ranges::equal(a->strides(), b->strides()));
    RL_PY_CATCH
}
RL_METHOD(method_dim) { return PyLong_FromLongLong(unwrap(self).dim()); }
RL_METHOD(method_numel) { return PyLong_FromLongLong(unwrap(self).numel()); }
RL_METHOD(method_element_size) { return PyLong_FromSize_t(itemsize(unwrap(self).dtype())); }
RL_METHOD(method_storage_offset) { return PyLong_FromLongLong(unwrap(self).impl()->offset()); }
RL_METHOD(method_data_ptr) {
    RL_PY_TRY
    require_values("data_ptr()", unwrap(self));
    return PyLong_FromVoidPtr(unwrap(self).impl()->data());
    RL_PY_CATCH
}
RL_METHOD(method_is_batched) { return PyBool_FromLong(is_batched(unwrap(self))); }
RL_METHOD(method_is_floating_point) { return PyBool_FromLong(is_floating(unwrap(self).dtype())); }
RL_METHOD(method_is_complex) { return PyBool_FromLong(is_complex(unwrap(self).dtype())); }
RL_METHOD(method_is_view) { return PyBool_FromLong(unwrap(self).impl()->is_view()); }
RL_METHOD(method_is_inference) { return PyBool_FromLong(unwrap(self).impl()->has(Flag::Inference)); }
PyObject* method_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    static constexpr ArgSpec specs[] = {{"self", nullptr, ArgType::Tensor, 0, 0},
                                        {"requires_grad", "mode", ArgType::Bool, 0, ArgSpec::kDefaulted}};
    static constexpr Signature signature{"requires_grad_(bool requires_grad=True) -> Tensor", specs, 2, 0};
    Parser p;
    p.parse("requires_grad_", &signature, 1, self, args, nargs, kwnames);
    unwrap(self).set_requires_grad(p.has(1) ? p.boolean(1) : true);
    return Py_NewRef(self);
    RL_PY_CATCH
}
// _make_subclass(cls, data, require_grad=False): returns an object of a subclass over the memory of `data`.
PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"cls", "data", "require_grad", nullptr};
    PyObject *cls, *data;
    int require_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p:_make_subclass", const_cast<char**>(names), &cls,
                                     &data, &require_grad))
        return nullptr;
    RL_PY_TRY
    RL_CHECK(PyType_Check(cls), throw_type, "_make_subclass(cls, data): cls must be a type, not %s",
             Py_TYPE(cls)->tp_name);
    RL_CHECK(is_tensor(data), throw_type, "_make_subclass(cls, data): data must be a Tensor, not %s",
             Py_TYPE(data)->tp_name);
    if (is_batched(unwrap(data))) fail_batched("_make_subclass()");
    Tensor t = make_alias(unwrap(data));
    if (require_grad) t.set_requires_grad(true);
    return wrap_as(reinterpret_cast<PyTypeObject*>(cls), std::move(t));
    RL_PY_CATCH
}

RL_GETTER(get_shape) {
    RL_PY_TRY return wrap_size(unwrap(self).sizes());
    RL_PY_CATCH
}
RL_GETTER(get_dtype) { return wrap(unwrap(self).dtype()); }
RL_GETTER(get_device) {
    RL_PY_TRY return wrap(unwrap(self).device());
    RL_PY_CATCH
}
RL_GETTER(get_ndim) { return PyLong_FromLongLong(unwrap(self).dim()); }
RL_GETTER(get_requires_grad) { return PyBool_FromLong(unwrap(self).requires_grad()); }
int set_requires_grad(PyObject* self, PyObject* value, void*) {
    RL_PY_TRY
    RL_CHECK(value && PyBool_Check(value), throw_type, "requires_grad must be a bool");
    unwrap(self).set_requires_grad(value == Py_True);
    return 0;
    RL_PY_CATCH_INT
}
RL_GETTER(get_is_leaf) { return PyBool_FromLong(unwrap(self).is_leaf()); }
RL_GETTER(get_grad) {
    RL_PY_TRY
    TensorImpl* grad = unwrap(self).impl()->grad();
    if (!grad) Py_RETURN_NONE;
    // The tensor must now be tracked: code that holds the grad may attach an object to it that refers back to this
    // tensor.
    if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    return wrap(Tensor::share(grad));
    RL_PY_CATCH
}
int set_grad(PyObject* self, PyObject* value, void*) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    if (!value || value == Py_None) {
        t.impl()->set_grad(nullptr);
        return 0;
    }
    RL_CHECK(is_tensor(value), throw_type, "grad must be a Tensor or None, not %s", Py_TYPE(value)->tp_name);
    const Tensor& g = unwrap(value);
    set_gradient(t, g);
    if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    return 0;
    RL_PY_CATCH_INT
}
RL_GETTER(get_version) { return PyLong_FromUnsignedLong(unwrap(self).version()); }
RL_GETTER(get_itemsize) { return PyLong_FromSize_t(itemsize(unwrap(self).dtype())); }
RL_GETTER(get_nbytes) {
    const Tensor& t = unwrap(self);
    return PyLong_FromLongLong(t.numel() * static_cast<int64_t>(itemsize(t.dtype())));
}
RL_GETTER(get_base) {
    RL_PY_TRY
    TensorImpl* impl = unwrap(self).impl();
    return wrap(impl->is_view() ? Tensor::share(impl->root()) : Tensor());
    RL_PY_CATCH
}
RL_GETTER(get_is_sparse) {
    const Tensor& t = unwrap(self);
    return PyBool_FromLong(is_sparse(t) && sparse_parts(t).layout == Layout::Coo);
}
RL_GETTER(get_is_sparse_csr) {
    const Tensor& t = unwrap(self);
    return PyBool_FromLong(is_sparse(t) && sparse_parts(t).layout == Layout::Csr);
}
RL_GETTER(get_is_cpu) { return PyBool_FromLong(unwrap(self).device().type == DeviceType::CPU); }
RL_GETTER(get_is_cuda) { return PyBool_FromLong(unwrap(self).device().type == DeviceType::CUDA); }
RL_GETTER(get_is_meta) { return PyBool_FromLong(unwrap(self).device().type == DeviceType::Meta); }
RL_GETTER(get_data) {
    RL_PY_TRY return wrap(is_batched(unwrap(self)) ? ops::detach(unwrap(self)) : make_data(unwrap(self)));
    RL_PY_CATCH
}
// Raises NotImplementedError if a program that is captured contains the tensor: no operator replaces its memory.
void check_outside_of_program(const Tensor& t) {
    try {
        report_values_read("data", t);
    } catch (const Error&) {
        const std::string line = describe(current_site());
        throw_not_implemented(
            "capture: `.data =`%s replaces the memory of a tensor of the program, which cannot be captured so far\n"
            "hint: use copy_() to write other values",
            line.empty() ? "" : (" at " + line).c_str());
    }
}
int set_data(PyObject* self, PyObject* value, void*) {
    RL_PY_TRY
    RL_CHECK(value && is_tensor(value), throw_type, "data must be a Tensor");
    if (is_tracing()) check_outside_of_program(unwrap(self)), check_outside_of_program(unwrap(value));
    require_values("data", unwrap(self));
    require_values("data", unwrap(value));
    RL_CHECK(!unwrap(self).requires_grad() || is_differentiable(unwrap(value).dtype()), throw_runtime,
             "data: a tensor that requires grad must stay floating point or complex, got %s",
             name(unwrap(value).dtype()));
    TensorImpl* to = unwrap(self).impl();
    TensorImpl* from = unwrap(value).impl();
    const uint32_t version = to->version();
    to->assign(Ref<Storage>::share(from->storage()), from->sizes(), from->strides(), from->offset(),
               from->dtype());
    to->own_version(version);
    return 0;
    RL_PY_CATCH_INT
}
RL_GETTER(get_transpose) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    int64_t dims[kMaxDims];
    for (int64_t d = 0; d < t.dim(); ++d) dims[d] = t.dim() - 1 - d;
    return wrap(ops::permute(t, IntList(dims, static_cast<size_t>(t.dim()))));
    RL_PY_CATCH
}
RL_GETTER(get_matrix_transpose) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    RL_CHECK(t.dim() >= 2, throw_runtime, "mT: needs at least 2 dimensions, got shape %s",
             to_string(t.sizes()).c_str());
    return wrap(ops::transpose(t, -2, -1));
    RL_PY_CATCH
}
RL_GETTER(get_conjugate_transpose) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    RL_CHECK(t.dim() == 2 || t.dim() == 0, throw_runtime,
             "H: needs a matrix, got shape %s\nhint: use mH to transpose the last two dimensions",
             to_string(t.sizes()).c_str());
    return wrap(ops::conj(ops::t(t)));
    RL_PY_CATCH
}
RL_GETTER(get_matrix_adjoint) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    RL_CHECK(t.dim() >= 2, throw_runtime, "mH: needs at least 2 dimensions, got shape %s",
             to_string(t.sizes()).c_str());
    return wrap(ops::conj(ops::transpose(t, -2, -1)));
    RL_PY_CATCH
}
RL_GETTER(get_real) {
    if (!is_complex(unwrap(self).dtype())) return Py_NewRef(self);
    RL_PY_TRY return wrap(ops::real(unwrap(self)));
    RL_PY_CATCH
}
RL_GETTER(get_imag) {
    RL_PY_TRY return wrap(ops::imag(unwrap(self)));
    RL_PY_CATCH
}
int set_part(PyObject* self, PyObject* value, void* imaginary) {
    RL_PY_TRY
    RL_CHECK(value, throw_type, "the attributes real and imag of a tensor cannot be deleted");
    Tensor part = imaginary ? ops::imag(unwrap(self)) : ops::real(unwrap(self));
    Scalar number;
    if (is_tensor(value)) {
        ops::copy_(part, unwrap(value), false);
    } else {
        RL_CHECK(to_scalar(value, number), throw_type, "%s: must be a Tensor or a number, not %s",
                 imaginary ? "imag" : "real", Py_TYPE(value)->tp_name);
        ops::fill_(part, number);
    }
    return 0;
    RL_PY_CATCH_INT
}
RL_GETTER(get_none) { Py_RETURN_NONE; }
RL_GETTER(get_false) { Py_RETURN_FALSE; }
// The dictionary of attributes, which is made when it is first read.
RL_GETTER(get_dict) {
    PyObject* dict = PyObject_GenericGetDict(self, nullptr);
    if (dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    return dict;
}
RL_METHOD(method_attributes) {
    PyObject* dict = reinterpret_cast<PyTensor*>(self)->dict;
    return Py_NewRef(dict ? dict : Py_None);
}
RL_GETTER(get_array_priority) { return PyFloat_FromDouble(1000); }
RL_GETTER(get_read_only) { return PyBool_FromLong(unwrap(self).impl()->storage()->read_only()); }

#define RL_FAST(...) \
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(__VA_ARGS__)), METH_FASTCALL | METH_KEYWORDS

}  // namespace

Py_ssize_t seen_length(PyObject* self) {
    if (has_override(self)) [[unlikely]] {
        RL_PY_TRY
        if (PyObject* answer = answer_by_class({"__len__", nullptr}, self)) {
            Object value = Object::steal(answer);
            return PyNumber_AsSsize_t(answer, PyExc_OverflowError);
        }
        RL_PY_CATCH_INT
    }
    return length(self);
}

PyMappingMethods tensor_mapping{seen_length, get_item, set_item};

PyMethodDef tensor_methods[] = {
    {"item", Seen<"item">::of<method_item>, METH_NOARGS,
     "item($self)\n--\n\nReturn the value of a tensor of one element as a Python number."},
    {"tolist", Seen<"tolist">::of<method_tolist>, METH_NOARGS,
     "tolist($self)\n--\n\nReturn the values as nested lists, or as a number for a 0-d tensor."},
    {"size", RL_FAST(Seen<"size">::of<method_size>),
     "size($self, dim=None)\n--\n\nReturn the shape, or the size of dimension `dim`."},
    {"stride", RL_FAST(Seen<"stride">::of<method_stride>),
     "stride($self, dim=None)\n--\n\nReturn the distance between neighbouring elements along each dimension, or along "
     "`dim`, in elements."},
    {"dim", Seen<"dim">::of<method_dim>, METH_NOARGS, "dim($self)\n--\n\nReturn the number of dimensions."},
    {"ndimension", Seen<"ndimension">::of<method_dim>, METH_NOARGS,
     "ndimension($self)\n--\n\nReturn the number of dimensions."},
    {"numel", Seen<"numel">::of<method_numel>, METH_NOARGS,
     "numel($self)\n--\n\nReturn the number of elements."},
    {"nelement", Seen<"nelement">::of<method_numel>, METH_NOARGS,
     "nelement($self)\n--\n\nReturn the number of elements."},
    {"element_size", Seen<"element_size">::of<method_element_size>, METH_NOARGS,
     "element_size($self)\n--\n\nReturn the size of one element in bytes."},
    {"_is_batched", method_is_batched, METH_NOARGS,
     "Return whether the tensor represents a batch of examples inside vmap."},
    {"storage_offset", Seen<"storage_offset">::of<method_storage_offset>, METH_NOARGS,
     "storage_offset($self)\n--\n\nReturn the offset of the first element in the storage, in elements."},
    {"data_ptr", Seen<"data_ptr">::of<method_data_ptr>, METH_NOARGS,
     "data_ptr($self)\n--\n\nReturn the address of the first element."},
    {"is_contiguous", RL_FAST(Seen<"is_contiguous">::of<method_is_contiguous>),
     "is_contiguous($self, memory_format='contiguous')\n--\n\nReturn whether the elements are stored without gaps in the "
     "order of `memory_format`, row-major by default."},
    {"is_set_to", RL_FAST(Seen<"is_set_to">::of<method_is_set_to>),
     "is_set_to($self, tensor)\n--\n\nReturn whether both tensors have the same memory, shape, strides and offset."},
    {"is_pinned", RL_FAST(Seen<"is_pinned">::of<method_is_pinned>),
     "is_pinned($self, device=None)\n--\n\nReturn whether the memory is page-locked."},
    {"get_device", Seen<"get_device">::of<method_get_device>, METH_NOARGS,
     "get_device($self)\n--\n\nReturn the index of the device, or -1 for the CPU."},
    {"__complex__", Seen<"__complex__">::of<method_complex>, METH_NOARGS, nullptr},
    {"is_nonzero", Seen<"is_nonzero">::of<method_is_nonzero>, METH_NOARGS,
     "is_nonzero($self)\n--\n\nReturn whether the value of a tensor of one element is not zero."},
    {"is_signed", Seen<"is_signed">::of<method_is_signed>, METH_NOARGS,
     "is_signed($self)\n--\n\nReturn whether the dtype can represent negative numbers."},
    {"is_floating_point", Seen<"is_floating_point">::of<method_is_floating_point>, METH_NOARGS,
     "is_floating_point($self)\n--\n\nReturn whether the dtype is a floating-point dtype."},
    {"is_complex", Seen<"is_complex">::of<method_is_complex>, METH_NOARGS,
     "is_complex($self)\n--\n\nReturn whether the dtype is complex."},
    {"_is_view", Seen<"_is_view">::of<method_is_view>, METH_NOARGS,
     "_is_view($self)\n--\n\nReturn whether the tensor is a view of another tensor, which is its `_base`."},
    {"is_inference", Seen<"is_inference">::of<method_is_inference>, METH_NOARGS,
     "is_inference($self)\n--\n\nReturn whether the tensor was made in inference mode."},
    {"requires_grad_", RL_FAST(Seen<"requires_grad_">::of<method_requires_grad_>),
     "requires_grad_($self, requires_grad=True)\n--\n\nSet requires_grad in place, and return the tensor."},
    {"_attributes", method_attributes, METH_NOARGS, "Return the __dict__, or None if the tensor has none."},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, "_make_subclass(cls, data, require_grad=False)"},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef tensor_properties[] = {
    {"shape", Seen<"shape">::get<get_shape>, nullptr, "The sizes of the dimensions, as a torch.Size.",
     nullptr},
    {"dtype", Seen<"dtype">::get<get_dtype>, nullptr, "The element type.", nullptr},
    {"device", Seen<"device">::get<get_device>, nullptr, "The device on which the tensor is stored.",
     nullptr},
    {"ndim", Seen<"ndim">::get<get_ndim>, nullptr, "The number of dimensions.", nullptr},
    {"requires_grad", Seen<"requires_grad">::get<get_requires_grad>,
     Seen<"requires_grad">::set<set_requires_grad>,
     "Whether operators on the tensor are recorded for backward().", nullptr},
    {"is_leaf", Seen<"is_leaf">::get<get_is_leaf>, nullptr,
     "Whether the tensor is a leaf of the autograd graph: not the result of a recorded operator.", nullptr},
    {"grad", Seen<"grad">::get<get_grad>, Seen<"grad">::set<set_grad>,
     "The gradient that backward() has accumulated, or None.", nullptr},
    {"_grad", Seen<"_grad">::get<get_grad>, Seen<"_grad">::set<set_grad>, "An alias of `grad`.", nullptr},
    {"data", Seen<"data">::get<get_data>, Seen<"data">::set<set_data>,
     "A tensor that shares this tensor's memory and is not part of any autograd graph.", nullptr},
    {"T", Seen<"T">::get<get_transpose>, nullptr, "The tensor with its dimensions in reverse order.",
     nullptr},
    {"mT", Seen<"mT">::get<get_matrix_transpose>, nullptr,
     "The tensor with its last two dimensions exchanged.", nullptr},
    {"H", Seen<"H">::get<get_conjugate_transpose>, nullptr,
     "The transpose of a matrix, conjugated if it is complex.", nullptr},
    {"mH", Seen<"mH">::get<get_matrix_adjoint>, nullptr,
     "The tensor with its last two dimensions exchanged, conjugated if it is complex.", nullptr},
    {"real", Seen<"real">::get<get_real>, Seen<"real">::set<set_part>,
     "A view of the real part of a complex tensor; the tensor itself if it is real.", nullptr},
    {"imag", Seen<"imag">::get<get_imag>, Seen<"imag">::set<set_part>,
     "A view of the imaginary part of a complex tensor.", const_cast<char*>("imaginary")},
    {"_version", Seen<"_version">::get<get_version>, nullptr,
     "The number of in-place writes to the tensor's memory. Writes through `data` are not counted.", nullptr},
    {"itemsize", Seen<"itemsize">::get<get_itemsize>, nullptr, "The size of one element in bytes.", nullptr},
    {"nbytes", Seen<"nbytes">::get<get_nbytes>, nullptr, "The total size of the elements in bytes.", nullptr},
    {"_base", Seen<"_base">::get<get_base>, nullptr, "The tensor of which this tensor is a view, or None.",
     nullptr},
    {"_read_only", get_read_only, nullptr, "Whether in-place writes to the tensor raise an error.", nullptr},
    {"grad_fn", Seen<"grad_fn">::get<get_none>, nullptr,
     "The node of the autograd graph that computed the tensor, or None. Always None if rushlight-autograd is not imported.",
     nullptr},
    {"__dict__", get_dict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__array_priority__", get_array_priority, nullptr,
     "A number above the priority of NumPy's arrays, so that NumPy leaves operators to the tensor.", nullptr},
    {"is_sparse", Seen<"is_sparse">::get<get_is_sparse>, nullptr, "Whether the layout is torch.sparse_coo.",
     nullptr},
    {"is_sparse_csr", Seen<"is_sparse_csr">::get<get_is_sparse_csr>, nullptr,
     "Whether the layout is torch.sparse_csr.", nullptr},
    {"is_quantized", Seen<"is_quantized">::get<get_false>, nullptr, nullptr, nullptr},
    {"is_cpu", Seen<"is_cpu">::get<get_is_cpu>, nullptr, nullptr, nullptr},
    {"is_cuda", Seen<"is_cuda">::get<get_is_cuda>, nullptr, nullptr, nullptr},
    {"is_meta", Seen<"is_meta">::get<get_is_meta>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace rushlight::python
