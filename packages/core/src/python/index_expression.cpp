// Conversion of the object between the brackets to a list of classified items.
#include "python/subscripts.h"

#include <cstring>

#include "python/arguments.h"
#include "python/conversions.h"
#include "rushlight/batched.h"

namespace rushlight::python {
namespace {

bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

[[noreturn]] void bad_index(PyObject* o) {
    // As in PyTorch, a string raises TypeError: a program that has a tensor in place of a dictionary expects it.
    const auto raise = PyUnicode_Check(o) || PyBytes_Check(o) ? throw_type : throw_index;
    raise(
        "index: must be an integer, a slice, an ellipsis (...), None, a bool, or an integer or bool tensor, "
        "array or sequence, not %s",
        Py_TYPE(o)->tp_name);
    __builtin_unreachable();  // the compiler does not know that a chosen function does not return
}

// Whether the index counts as a tuple. Tuples do, and so do lists that contain other objects than numbers: x[[a, b]] is
// x[a, b] if a is a tensor, a list or a slice. (This is PyTorch's rule; NumPy's is different.)
bool is_tuple_like(PyObject* o) {
    if (PyTuple_Check(o)) return true;
    if (!PyList_Check(o) || PyList_GET_SIZE(o) >= 32) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
        PyObject* item = PyList_GET_ITEM(o, i);
        if (is_tensor(item) || PySlice_Check(item) || item == Py_Ellipsis || item == Py_None ||
            (PySequence_Check(item) && !PyUnicode_Check(item)))
            return true;
    }
    return false;
}

// Converts integers and masks in a list, an array or another sequence.
Tensor sequence_tensor(PyObject* o) {
    if (PyUnicode_Check(o) || PyBytes_Check(o)) bad_index(o);
    Tensor t;
    if (is_list(o)) {
        t = from_sequence(o, std::nullopt);
    } else if (PyObject_CheckBuffer(o)) {
        t = from_array(o, ArrayCopy::IfNeeded);
    } else {
        Object list = Object::steal(PySequence_List(o));
        t = from_sequence(list.get(), std::nullopt);
    }
    // An empty list does not determine the type of its elements.
    if (is_list(o) && t.numel() == 0 && is_floating(t.dtype())) t = make_tensor(t.sizes(), DType::Int64);
    return t;
}

}  // namespace

IndexExpression::IndexExpression(PyObject* index) {
    if (!is_tuple_like(index)) {
        add(index);
        return;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(index);
    RL_CHECK(n <= kMaxItems, throw_index, "index: more than %d indices", kMaxItems);
    for (Py_ssize_t i = 0; i < n; ++i) add(PySequence_Fast_GET_ITEM(index, i));
}

void IndexExpression::push(IndexItem::Kind kind, int64_t value, PyObject* object) {
    items_[size_++] = {kind, value, object};
}

void IndexExpression::add(PyObject* o) {
    using Kind = IndexItem::Kind;
    int64_t value = 0;
    if (PyLong_CheckExact(o)) {
        to_int(o, value);
        return push(Kind::Int, value, o);
    }
    if (PySlice_Check(o)) return push(Kind::Slice, 0, o);
    if (o == Py_None) return push(Kind::None, 0, o);
    if (o == Py_Ellipsis) return push(Kind::Ellipsis, 0, o);
    if (is_tensor(o)) return add_tensor(unwrap(o));
    if (PyBool_Check(o)) {
        advanced_ = true;
        return push(Kind::Bool, o == Py_True, o);
    }
    if (PySequence_Check(o)) return add_tensor(sequence_tensor(o));
    Scalar number;
    if (!PyIndex_Check(o) && to_scalar(o, number) && number.is_bool()) {  // numpy.bool
        advanced_ = true;
        return push(Kind::Bool, number.to<bool>(), o);
    }
    if (PyFloat_Check(o) || !to_int(o, value)) bad_index(o);
    push(Kind::Int, value, o);
}

void IndexExpression::add_tensor(Tensor t) {
    using Kind = IndexItem::Kind;
    DType dtype = t.dtype();
    bool mask = dtype == DType::Bool || dtype == DType::UInt8;
    const bool is_number = t.dim() == 0 && t.device().type != DeviceType::Meta && !is_batched(t);
    RL_CHECK(mask || dtype == DType::Int64 || dtype == DType::Int32 || (is_number && is_integral(dtype)),
             throw_index, "index: tensors used as indices must be int64, int32 or bool, not %s%s",
             name(dtype), is_integral(dtype) ? "\nhint: convert it with .long()" : "");
    if (is_number) {
        int64_t value = item(t).to<int64_t>();
        if (!mask) return push(Kind::Int, value, nullptr);
        advanced_ = true;
        return push(Kind::Bool, value != 0, nullptr);
    }
    advanced_ = true;
    tensors_.push_back(std::move(t));
    push(Kind::Tensor, static_cast<int64_t>(tensors_.size()) - 1, nullptr);
}

int64_t IndexExpression::consumed(int first) const {
    int64_t n = 0;
    for (int i = first; i < size_; ++i) {
        const IndexItem& item = items_[i];
        if (item.kind == IndexItem::Kind::Int || item.kind == IndexItem::Kind::Slice) {
            ++n;
        } else if (item.kind == IndexItem::Kind::Tensor) {
            const Tensor& t = tensor(item);
            n += t.dtype() == DType::Bool || t.dtype() == DType::UInt8 ? t.dim() : 1;
        }
    }
    return n;
}

}  // namespace rushlight::python
