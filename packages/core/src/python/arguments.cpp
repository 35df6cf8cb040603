#include "python/arguments.h"

#include "ops/copying.h"
#include "python/default_device.h"
#include "python/override.h"
#include "rushlight/dispatch.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/zeros.h"
#include "rushlight/streams.h"

#include <cstring>
#include <string>

namespace rushlight::python {
namespace {

const char* describe(ArgType type) {
    switch (type) {
        case ArgType::Tensor: return "Tensor";
        case ArgType::OptTensor: return "Tensor or None";
        case ArgType::TensorList: return "sequence of Tensors";
        case ArgType::OptTensorList: return "sequence of Tensors or Nones";
        case ArgType::TensorOrScalar: return "Tensor or Number";
        case ArgType::OptTensorOrScalar: return "Tensor, Number or None";
        case ArgType::Scalar: return "Number";
        case ArgType::OptScalar: return "Number or None";
        case ArgType::Int: return "int";
        case ArgType::OptInt: return "int or None";
        case ArgType::IntList: return "int or sequence of ints";
        case ArgType::OptIntList: return "int, sequence of ints or None";
        case ArgType::Bool: return "bool";
        case ArgType::OptBool: return "bool or None";
        case ArgType::Float: return "float";
        case ArgType::OptFloat: return "float or None";
        case ArgType::Str: return "str";
        case ArgType::OptStr: return "str or None";
        case ArgType::DType: return "dtype";
        case ArgType::OptDType: return "dtype or None";
        case ArgType::OptDevice: return "device, str, int or None";
        case ArgType::OptGenerator: return "Generator or None";
        case ArgType::Out: return "Tensor or tuple of Tensors";
    }
    return "";
}

bool is_optional(ArgType type) {
    switch (type) {
        case ArgType::OptTensor:
        case ArgType::OptTensorOrScalar:
        case ArgType::OptScalar:
        case ArgType::OptInt:
        case ArgType::OptIntList:
        case ArgType::OptBool:
        case ArgType::OptFloat:
        case ArgType::OptStr:
        case ArgType::OptDType:
        case ArgType::OptDevice:
        case ArgType::OptGenerator:
        case ArgType::Out: return true;
        default: return false;
    }
}

// NumPy's scalars are numbers but not sequences; its arrays are both.
bool numpy_scalar(PyObject* o, Scalar& out) {
    PyTypeObject* type = Py_TYPE(o);
    if (std::strncmp(type->tp_name, "numpy.", 6) != 0 || PySequence_Check(o)) return false;
    if (std::strncmp(type->tp_name + 6, "bool", 4) == 0) {
        out = Scalar(PyObject_IsTrue(o) == 1);
        return true;
    }
    if (PyIndex_Check(o)) {
        int64_t v;
        if (!to_int(o, v)) return false;
        out = Scalar(v);
        return true;
    }
    if (std::strncmp(type->tp_name + 6, "complex", 7) == 0) {
        const Py_complex z = PyComplex_AsCComplex(o);
        out = Scalar(Complex<double>(z.real, z.imag));
        return true;
    }
    if (!type->tp_as_number || !type->tp_as_number->nb_float) return false;
    double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    out = Scalar(v);
    return true;
}

// Whether an object can be an element of a list of integers. If not, another signature may accept it.
bool may_be_item(PyObject* o) {
    if (PyLong_CheckExact(o)) return true;
    if (PyBool_Check(o) || PyFloat_Check(o)) return false;
    if (!is_tensor(o)) return true;
    const Tensor& t = unwrap(o);
    return t.numel() == 1 && is_integral(t.dtype());
}

// Whether an object can be a single integer argument. A tensor must be 0-d.
bool may_be_int(const ArgSpec& spec, PyObject* o) {
    if (PyLong_CheckExact(o)) return true;
    if (!may_be_item(o)) return false;
    return !is_tensor(o) || (unwrap(o).dim() == 0 && !(spec.flags & ArgSpec::kNumber));
}

// Returns the Python number of a 0-d tensor that no stage handles, or null for other tensors. The tensor may belong to a
// class that overrides operators.
Object number_of(const ArgSpec& spec, PyObject* o) {
    const Tensor& t = unwrap(o);
    const StagesOff off(bit(Stage::Python));
    if (spec.flags & ArgSpec::kNumber || t.dim() != 0 || (t.impl()->stages() & ~bit(Stage::Python)) != 0 ||
        t.device().type == DeviceType::Meta)
        return Object();
    return Object::steal(PyObject_CallMethod(o, "item", nullptr));
}

// NumPy's names of common arguments. Every operator accepts them as alternatives to PyTorch's names.
bool is_numpy_name(PyObject* key, const char* name) {
    static constexpr struct {
        const char *name, *numpy;
    } pairs[] = {{"dim", "axis"}, {"keepdim", "keepdims"}, {"input", "x"},
                 {"input", "a"},  {"input", "x1"},         {"other", "x2"}};
    for (const auto& pair : pairs)
        if (PyUnicode_CompareWithASCIIString(key, pair.numpy) == 0 && std::strcmp(name, pair.name) == 0)
            return true;
    return false;
}

// Returns the sparse layout that can be made from a size only, or nothing for another object.
std::optional<Layout> sparse_layout(PyObject* o) {
    if (std::strcmp(Py_TYPE(o)->tp_name, "_OtherLayout") != 0) return {};
    const Object text = Object::steal(PyObject_Str(o));
    for (Layout layout : {Layout::Coo, Layout::Csr, Layout::Csc})
        if (PyUnicode_CompareWithASCIIString(text.get(), name(layout)) == 0) return layout;
    return {};
}

// Checks the arguments `layout` and `pin_memory`, which all functions that create tensors accept. `layout` must be
// strided, which sets `strided`, or a sparse layout for functions that return zeros. `pin_memory` sets `pins`. Returns
// whether `key` is one of these two arguments.
bool says_how_it_is_made(const char* op, const Signature& s, PyObject* key, PyObject* value, bool& pins,
                         bool& strided, std::optional<Layout>& sparse) {
    const ArgSpec* device = nullptr;
    for (int i = 0; i < s.count; ++i)
        if (s.args[i].type == ArgType::OptDevice && s.args[i].flags & ArgSpec::kKeywordOnly)
            device = &s.args[i];
    if (!device) return false;
    if (PyUnicode_CompareWithASCIIString(key, "layout") == 0) {
        if (value == Py_None) return true;
        strided = std::strcmp(Py_TYPE(value)->tp_name, "layout") == 0;
        if (strided) return true;
        const bool may_be_sparse = device->flags & ArgSpec::kSparse;
        if (may_be_sparse) sparse = sparse_layout(value);
        RL_CHECK(sparse, throw_not_implemented,
                 "%s(layout): must be torch.strided%s\n"
                 "hint: use sparse_coo_tensor() or to_sparse() to create a sparse tensor",
                 op, may_be_sparse ? ", torch.sparse_coo, torch.sparse_csr or torch.sparse_csc" : "");
        return true;
    }
    if (PyUnicode_CompareWithASCIIString(key, "pin_memory") == 0) {
        RL_CHECK(value == Py_None || PyBool_Check(value), throw_type,
                 "%s(pin_memory): must be a bool, not %s", op, Py_TYPE(value)->tp_name);
        pins = value == Py_True;
        return true;
    }
    return false;
}

}  // namespace

Tensor Parser::pinned(const Tensor& t) {
    const Tensor made = make_pinned(t, pinning_device());
    copy_into(made, t);
    if (t.requires_grad()) made.set_requires_grad(true);
    return made;
}

Tensor Parser::sparse_zeros(const char* op, IntList size, std::optional<DType> dtype,
                            std::optional<Device> device, bool requires_grad,
                            std::optional<std::string_view> memory_format) const {
    RL_CHECK(!pins_, throw_not_implemented, "%s(pin_memory): sparse tensors cannot be in page-locked memory",
             op);
    RL_CHECK(!memory_format, throw_runtime, "%s(memory_format): sparse tensors have no memory format", op);
    const Tensor made =
        empty_sparse(op, *layout_, size, dtype.value_or(default_dtype()), device.value_or(Device()));
    if (requires_grad) made.set_requires_grad(true);
    return made;
}

Tensor Parser::sparse_zeros(const char* op, const Tensor& like, IntList size, std::optional<DType> dtype,
                            std::optional<Device> device, bool requires_grad) const {
    return sparse_zeros(op, size, dtype.value_or(like.dtype()), device.value_or(like.device()),
                        requires_grad);
}

Tensor Parser::sparse_zeros(const char* op, const Tensor& like, std::optional<DType> dtype,
                            std::optional<Device> device, bool requires_grad,
                            std::optional<std::string_view>) const {
    return sparse_zeros(op, like, like.sizes(), dtype, device, requires_grad);
}

Tensor Parser::like(int i) const {
    const Tensor& t = tensor(i);
    if (!strided_ || !is_sparse(t)) return t;
    return ops::expand(ops::zeros({}, t.dtype(), t.device()), t.sizes());
}

bool to_int(PyObject* o, int64_t& out) {
    if (!PyLong_Check(o)) {
        if (!PyIndex_Check(o)) return false;
        Object index = Object::steal(PyNumber_Index(o));
        return to_int(index.get(), out);
    }
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) throw IntegerOverflow();
    out = v;
    return true;
}

bool to_scalar(PyObject* o, Scalar& out) {
    if (PyFloat_CheckExact(o)) {
        out = Scalar(PyFloat_AS_DOUBLE(o));
        return true;
    }
    if (PyBool_Check(o)) {
        out = Scalar(o == Py_True);
        return true;
    }
    if (PyLong_Check(o)) {
        int64_t v;
        to_int(o, v);
        out = Scalar(v);
        return true;
    }
    if (PyFloat_Check(o)) {
        out = Scalar(PyFloat_AS_DOUBLE(o));
        return true;
    }
    if (PyComplex_Check(o)) {
        const Py_complex z = PyComplex_AsCComplex(o);
        out = Scalar(Complex<double>(z.real, z.imag));
        return true;
    }
    return numpy_scalar(o, out);
}

const Tensor& Parser::undefined() {
    static const Tensor none;
    return none;
}

void Parser::push_int(int64_t v) {
    if (more_ints_.empty()) {
        if (num_ints_ < kMaxDims) {
            ints_[num_ints_++] = v;
            return;
        }
        more_ints_.assign(ints_, ints_ + num_ints_);
    }
    more_ints_.push_back(v);
    ++num_ints_;
}

bool Parser::convert_ints(const ArgSpec& spec, PyObject* o, int i) {
    uint32_t begin = num_ints_;
    if (PyTuple_Check(o) || PyList_Check(o)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        for (Py_ssize_t k = 0; k < n; ++k) {
            PyObject* item = PySequence_Fast_GET_ITEM(o, k);
            int64_t v;
            if (!may_be_item(item) || !to_int(item, v)) return false;
            push_int(v);
        }
        // For int[2], (3,) is treated like 3.
        if (spec.fill > 1 && n == 1)
            for (int k = 1; k < spec.fill; ++k) push_int(ints_data()[begin]);
        if (spec.fill > 1 && n != 1 && n != 0 && n != spec.fill) return false;
    } else {
        int64_t v;
        if (!may_be_item(o) || (spec.flags & ArgSpec::kNumber && is_tensor(o)) || !to_int(o, v)) return false;
        for (int k = 0; k < (spec.fill ? spec.fill : 1); ++k) push_int(v);
    }
    slot_[i].list = {begin, num_ints_ - begin};
    return true;
}

bool Parser::convert_tensors(PyObject* o, int i, bool optional) {
    if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    auto begin = static_cast<uint32_t>(tensors_.size());
    tensors_.reserve(begin + static_cast<size_t>(n));
    for (Py_ssize_t k = 0; k < n; ++k) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, k);
        if (is_tensor(item)) tensors_.push_back(unwrap(item));
        else if (optional && item == Py_None) tensors_.emplace_back();
        else return false;
    }
    slot_[i].list = {begin, static_cast<uint32_t>(n)};
    return true;
}

bool Parser::convert(const ArgSpec& spec, PyObject* o, int i) {
    if (o == Py_None && is_optional(spec.type)) return true;
    Slot& slot = slot_[i];
    switch (spec.type) {
        case ArgType::Tensor:
        case ArgType::OptTensor: return is_tensor(o);
        case ArgType::TensorList: return convert_tensors(o, i, false);
        case ArgType::OptTensorList: return convert_tensors(o, i, true);
        case ArgType::TensorOrScalar:
        case ArgType::OptTensorOrScalar: return is_tensor(o) || to_scalar(o, slot.scalar);
        case ArgType::Scalar:
        case ArgType::OptScalar: {
            auto fits = [&] { return !slot.scalar.is_complex() || (spec.flags & ArgSpec::kComplex); };
            if (!is_tensor(o)) return to_scalar(o, slot.scalar) && fits();
            const Object number = number_of(spec, o);
            return number && to_scalar(number.get(), slot.scalar) && fits();
        }
        case ArgType::Int:
        case ArgType::OptInt: return may_be_int(spec, o) && to_int(o, slot.integer);
        case ArgType::IntList:
        case ArgType::OptIntList: return convert_ints(spec, o, i);
        case ArgType::Bool:
        case ArgType::OptBool: {
            if (PyBool_Check(o)) {
                slot.integer = o == Py_True;
                return true;
            }
            Scalar s;
            if (!numpy_scalar(o, s) || !s.is_bool()) return false;
            slot.integer = s.to<bool>();
            return true;
        }
        case ArgType::Float:
        case ArgType::OptFloat: {
            if (!is_tensor(o)) return to_scalar(o, slot.scalar) && !slot.scalar.is_complex();
            const Object number = number_of(spec, o);
            return number && to_scalar(number.get(), slot.scalar) && !slot.scalar.is_complex();
        }
        case ArgType::Str:
        case ArgType::OptStr: {
            if (!PyUnicode_Check(o)) return false;
            Py_ssize_t size;
            const char* data = PyUnicode_AsUTF8AndSize(o, &size);
            if (!data) throw PythonError();
            slot.text = {data, static_cast<size_t>(size)};
            return true;
        }
        case ArgType::DType:
        case ArgType::OptDType: return to_dtype(o, slot.dtype);
        case ArgType::OptDevice: return to_device(o, slot.device);
        case ArgType::OptGenerator: return PyObject_TypeCheck(o, GeneratorType);
        case ArgType::Out: return is_tensor(o) || convert_tensors(o, i, false);
    }
    return false;
}

const Tensor& Parser::out(int i, int k, int count) const {
    if (is_tensor(object_[i])) {
        RL_CHECK(count == 1, throw_type, "out= must be a tuple of %d Tensors, not one Tensor", count);
        return unwrap(object_[i]);
    }
    RL_CHECK(slot_[i].list.size == static_cast<uint32_t>(count), throw_type,
             "out= must be %d Tensor(s), got a tuple of %u", count, slot_[i].list.size);
    return tensors_[slot_[i].list.begin + static_cast<uint32_t>(k)];
}

TensorList Parser::outs(int i) const {
    RL_CHECK(!is_tensor(object_[i]), throw_type, "out= must be a sequence of Tensors, not one Tensor");
    return tensors(i);
}

namespace {

/// Returns the index of the argument that a keyword names, or -1. The search begins at argument `first`, because programs
/// often pass keywords in the order of the signature. Not inlined, so that calls without keywords stay short.
[[gnu::noinline]] int find_argument(const Signature& s, PyObject* key, int first) {
    if (!PyUnicode_IS_ASCII(key)) return -1;
    const auto* text = static_cast<const char*>(PyUnicode_DATA(key));
    const auto length = static_cast<size_t>(PyUnicode_GET_LENGTH(key));
    const auto is = [=](const char* name) {
        return *name == *text && std::strcmp(name, text) == 0 && std::strlen(name) == length;
    };
    for (int step = 0; step < s.count; ++step) {
        const int i = first + step < s.count ? first + step : first + step - s.count;
        if (is(s.args[i].name) || (s.args[i].alias && is(s.args[i].alias))) return i;
    }
    return -1;
}

}  // namespace

bool Parser::bind(const char* name, const Signature& s, PyObject* self, PyObject* const* args,
                  Py_ssize_t nargs, PyObject* kwnames, Failure& failure) {
    for (int i = 0; i < s.count; ++i) object_[i] = nullptr;
    pins_ = strided_ = false;
    layout_.reset();
    num_ints_ = 0;
    more_ints_.clear();
    tensors_.clear();
    if (self) object_[s.self] = self;

    Py_ssize_t at = 0;
    for (int i = 0; i < s.count && at < nargs; ++i) {
        const ArgSpec& spec = s.args[i];
        if (object_[i]) continue;  // the object of a method
        if (spec.flags & ArgSpec::kKeywordOnly) break;
        PyObject* o = args[at];
        if (spec.type == ArgType::Tensor && Py_TYPE(o) == TensorType) {
            object_[i] = o;  // the most frequent argument, which `convert` accepts as it is
            ++at;
            continue;
        }
        if (spec.flags & ArgSpec::kVarargs && spec.type == ArgType::TensorList && is_tensor(o)) {
            // broadcast_tensors(a, b): the rest of the positional arguments is the list.
            auto begin = static_cast<uint32_t>(tensors_.size());
            for (; at < nargs; ++at) {
                if (!is_tensor(args[at])) {
                    failure = {Failure::Type, i, static_cast<int>(at), args[at]};
                    return false;
                }
                tensors_.push_back(unwrap(args[at]));
            }
            slot_[i].list = {begin, static_cast<uint32_t>(tensors_.size()) - begin};
            object_[i] = o;
            break;
        }
        if (spec.flags & ArgSpec::kVarargs &&
            (spec.type == ArgType::IntList || spec.type == ArgType::OptIntList) &&
            (nargs - at > 1 || PyLong_Check(o))) {
            // view(2, 3): the rest of the positional arguments is the list.
            uint32_t begin = num_ints_;
            for (; at < nargs; ++at) {
                int64_t v;
                const bool refused =
                    !PyLong_CheckExact(args[at]) && (PyBool_Check(args[at]) || PyFloat_Check(args[at]));
                if (refused || !to_int(args[at], v)) {
                    failure = {Failure::Type, i, static_cast<int>(at), args[at]};
                    return false;
                }
                push_int(v);
            }
            slot_[i].list = {begin, num_ints_ - begin};
            object_[i] = o;
            break;
        }
        ++at;
        if (o == Py_None && spec.flags & ArgSpec::kNoneIsDefault) continue;
        if (!convert(spec, o, i)) {
            failure = {Failure::Type, i, static_cast<int>(at) - 1, o};
            return false;
        }
        object_[i] = o;
    }
    if (at < nargs) {
        failure = {Failure::TooMany, 0, 0, nullptr};
        return false;
    }
    Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    int next = 0;  // the argument after the one that the previous keyword named
    for (Py_ssize_t k = 0; k < nkw; ++k) {
        PyObject* key = PyTuple_GET_ITEM(kwnames, k);
        int found = find_argument(s, key, next);
        for (int i = 0; i < s.count && found < 0; ++i)
            if (is_numpy_name(key, s.args[i].name)) found = i;
        if (found < 0) {
            if (says_how_it_is_made(name, s, key, args[nargs + k], pins_, strided_, layout_)) continue;
            failure = {Failure::Unknown, 0, 0, key};
            return false;
        }
        if (object_[found]) {
            failure = {Failure::Twice, found, 0, key};
            return false;
        }
        PyObject* o = args[nargs + k];
        if (o == Py_None &&
            (s.args[found].type == ArgType::Out || s.args[found].flags & ArgSpec::kNoneIsDefault))
            continue;
        if (!convert(s.args[found], o, found)) {
            failure = {Failure::Type, found, -1, o};
            return false;
        }
        object_[found] = o;
        next = found + 1;
    }
    for (int i = 0; layout_ && i < s.count; ++i)
        RL_CHECK(!(s.args[i].type == ArgType::Out && given(i)), throw_not_implemented,
                 "%s(out): cannot be combined with a sparse layout", name);
    for (int i = 0; i < s.count; ++i) {
        if (s.args[i].flags & ArgSpec::kHere && !given(i) && default_device) [[unlikely]] {
            object_[i] = Py_True;  // an arbitrary object, so that the argument counts as passed
            slot_[i].device = *default_device;
        }
        if (object_[i] || s.args[i].flags & ArgSpec::kDefaulted) continue;
        if (s.args[i].flags & ArgSpec::kVarargs && s.args[i].type == ArgType::TensorList) {
            // The call is broadcast_tensors(), without tensors.
            slot_[i].list = {static_cast<uint32_t>(tensors_.size()), 0};
            continue;
        }
        failure = {Failure::Missing, i, 0, nullptr};
        return false;
    }
    return true;
}

int Parser::parse(const char* name, const Signature* signatures, int count, PyObject* self,
                  PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    constexpr int kMaxSignatures = 8;
    Failure failures[kMaxSignatures];
    for (int i = 0; i < count; ++i)
        if (bind(name, signatures[i], self, args, nargs, kwnames, failures[i])) return i;
    fail(name, signatures, count, failures, self, args, nargs, kwnames);
}

void Parser::fail(const char* name, const Signature* signatures, int count, const Failure* failures,
                  PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    answer_by_other_class(name, self, args, nargs, kwnames);
    auto utf8 = [](PyObject* text) {
        const char* data = PyUnicode_AsUTF8(text);
        return data ? data : "?";
    };
    for (Py_ssize_t i = 0; i < nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0); ++i)
        if (std::strcmp(Py_TYPE(args[i])->tp_name, "OtherDtype") == 0) {
            const Object dtype = Object::steal(PyObject_Repr(args[i]));
            throw_type(
                "%s(dtype): tensors of dtype %s are not supported\n"
                "hint: see docs/differences.md for the dtypes that are missing",
                name, utf8(dtype.get()));
        }
    auto reason = [&](const Signature& s, const Failure& f) -> std::string {
        std::string text;
        const char* arg = s.count ? s.args[f.arg].name : "";
        switch (f.kind) {
            case Failure::Type: {
                text = std::string("argument '") + arg + "'";
                if (f.position >= 0) text += " (position " + std::to_string(f.position + 1) + ")";
                text += std::string(" must be ") + describe(s.args[f.arg].type) + ", not " +
                        Py_TYPE(f.object)->tp_name;
                break;
            }
            case Failure::Missing: text = std::string("missing argument '") + arg + "'"; break;
            case Failure::TooMany:
                text = "takes fewer positional arguments: " + std::to_string(nargs + (self != nullptr)) +
                       " were given";
                break;
            case Failure::Unknown:
                text = std::string("got an unexpected keyword argument '") + utf8(f.object) + "'";
                break;
            case Failure::Twice: text = std::string("got two values for argument '") + arg + "'"; break;
        }
        return text;
    };
    if (count == 1)
        throw_type("%s(): %s\nhint: the signature is %s", name, reason(signatures[0], failures[0]).c_str(),
                   signatures[0].text);
    std::string text = "no signature fits the arguments (";
    bool first = true;
    auto add = [&](PyObject* o) {
        text += (first ? "" : ", ") + std::string(Py_TYPE(o)->tp_name);
        first = false;
    };
    if (self) add(self);
    for (Py_ssize_t i = 0; i < nargs; ++i) add(args[i]);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
        text += (first ? "" : ", ") + std::string(utf8(PyTuple_GET_ITEM(kwnames, k))) + "=";
        first = true;
        add(args[nargs + k]);
    }
    text += "); it has";
    for (int i = 0; i < count; ++i)
        text += std::string("\n  ") + signatures[i].text + ": " + reason(signatures[i], failures[i]);
    throw_type("%s(): %s", name, text.c_str());
}

}  // namespace rushlight::python
