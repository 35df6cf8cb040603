// tensor[index], tensor[index] = value, iteration.
//
// Note [Indexing]
// Integers, slices, None and ... make a view. If no stage handles the tensor's operators, the geometry of the view is
// computed here, and the view is made in one step. Otherwise the operators select, slice and unsqueeze are called one
// after the other, so that each is recorded. Bools and tensors then select elements of that view, by the operators
// `index` and `index_put_`. Negative strides do not exist. Therefore a slice with a negative step takes the same
// elements with a positive step, and the result is then flipped in that dimension, which makes a copy.
#include "python/subscripts.h"

#include <cmath>
#include <limits>

#include "python/arguments.h"
#include "python/conversions.h"
#include "python/override.h"
#include "python/results.h"
#include "rushlight/dispatch.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/fill_.h"
#include "rushlight/ops/flip.h"
#include "rushlight/ops/index.h"
#include "rushlight/ops/index_put_.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/slice.h"
#include "rushlight/ops/unbind.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/view.h"
#include "rushlight/sparse.h"
#include "rushlight/tracing.h"

namespace rushlight::python {
namespace {

StageMask stages_of(const Tensor& t) {
    return (t.impl()->stages() | dispatch_state.on) & ~dispatch_state.off;
}

int64_t wrap_index(int64_t index, int64_t size, int dim) {
    RL_CHECK(index >= -size && index < size, throw_index,
             "index: %lld is out of bounds for dimension %d of size %lld", (long long)index, dim,
             (long long)size);
    return index < 0 ? index + size : index;
}

struct Range {
    int64_t start, step, length;
    bool backwards;  // whether the elements are taken from the last to the first
    bool
        whole;  // whether the slice is `:`. A start of 0 may be computed from a size, and differ in another call.
    int64_t first, last;  // with a positive step, the bounds as they were passed
};
Range read_slice(PyObject* slice, int64_t size) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) throw PythonError();
    const auto* given = reinterpret_cast<const PySliceObject*>(slice);
    const bool whole = given->start == Py_None && given->stop == Py_None && step == 1;
    const Py_ssize_t first = start, last = stop;
    Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
    if (step > 0) return {start, step, length, false, whole, first, last};
    const int64_t low = length ? start + (length - 1) * step : 0;
    if (length < 2) return {low, 1, length, false, false, low, low + length};
    return {low, -step, length, true, false, low, low - length * step};
}

// A view under construction, as a geometry.
class PlainView {
  public:
    explicit PlainView(const Tensor& base) : base_(base), view_(base) {}
    int64_t ndim() const { return view_.ndim; }
    int64_t size(int d) const { return view_.sizes[d]; }
    void select(int d, int64_t i) {
        view_.offset += i * view_.strides[d];
        view_.remove(d);
    }
    void slice(int d, const Range& r) {
        // An empty slice may begin after the last element. The offset is then not changed, so that it stays inside the
        // memory.
        if (r.length) view_.offset += r.start * view_.strides[d];
        view_.sizes[d] = r.length;
        view_.strides[d] *= r.step;
    }
    void unsqueeze(int d) { view_.insert(d, 1, d < view_.ndim ? view_.sizes[d] * view_.strides[d] : 1); }
    Tensor finish() { return take_view(base_, view_); }

  private:
    const Tensor& base_;
    ViewSpec view_;
};

// A view under construction, as a chain of recorded operators.
class RecordedView {
  public:
    explicit RecordedView(const Tensor& base) : t_(base) {}
    int64_t ndim() const { return t_.dim(); }
    int64_t size(int d) const { return t_.sizes()[static_cast<size_t>(d)]; }
    void select(int d, int64_t i) { step(ops::select(t_, d, i)); }
    // Whether a slice is recorded depends on its form and not on the size of the tensor, so that captures with several sizes
    // record the same operators. The bounds are recorded as they were passed: the operator clips them to the size in a run of
    // the program, which may be smaller than the size in the capture.
    void slice(int d, const Range& r) {
        if (r.whole) return;
        const bool to_end = r.last == PY_SSIZE_T_MAX;
        step(ops::slice(t_, d, r.first, to_end ? std::nullopt : std::optional<int64_t>(r.last), r.step));
    }
    void unsqueeze(int d) { step(ops::unsqueeze(t_, d)); }
    // x[...] must be a new tensor.
    Tensor finish() { return changed_ ? t_ : ops::expand(t_, t_.sizes()); }

  private:
    void step(Tensor t) {
        t_ = std::move(t);
        changed_ = true;
    }
    Tensor t_;
    bool changed_ = false;
};

[[noreturn]] void too_many(const Tensor& t, const IndexExpression& index) {
    RL_CHECK(t.dim() > 0, throw_index,
             "index: a 0-d tensor has no dimension to index\nhint: use item() to read its value");
    throw_index("index: got %lld indices, too many for a tensor of %lld dimensions",
                (long long)index.consumed(0), (long long)t.dim());
}

// x[True] is x[None], from which the only row is selected. x[False] selects no row.
Tensor bool_index(bool value) {
    int64_t n = value;
    Tensor t = make_tensor(IntList(&n, 1), DType::Int64);
    if (value) *t.data<int64_t>() = 0;
    return t;
}

// Applies all items. Index tensors are added to `chosen`, for the operators `index` and `index_put_`. `chosen` has one
// entry for each dimension of the view, which is undefined if no elements are selected in that dimension. A mask of k
// dimensions is one entry and stands for k dimensions. Dimensions with a negative step are added to `backwards`, for
// the operator `flip`.
template <class View>
Tensor apply(const Tensor& base, const IndexExpression& index, std::vector<Tensor>& chosen,
             std::vector<int64_t>& backwards) {
    using Kind = IndexItem::Kind;
    View view(base);
    int d = 0;  // the dimension of the view to which the next item applies
    int source = 0;  // the corresponding dimension of the base, for errors
    size_t slot = 0;  // the corresponding position in `chosen`, where a mask counts as one
    auto choose = [&](Tensor t) {
        chosen.resize(slot + 1);
        chosen[slot++] = std::move(t);
    };
    for (int i = 0; i < index.size(); ++i) {
        const IndexItem& item = index[i];
        bool consumes = item.kind == Kind::Int || item.kind == Kind::Slice || item.kind == Kind::Tensor;
        if (consumes && d >= view.ndim()) too_many(base, index);
        switch (item.kind) {
            case Kind::Int: view.select(d, wrap_index(item.value, view.size(d), source++)); break;
            case Kind::Slice: {
                Range range = read_slice(item.object, view.size(d));
                view.slice(d, range);
                if (range.backwards) backwards.push_back(d);
                ++d, ++source, ++slot;
                break;
            }
            case Kind::None: {
                view.unsqueeze(d);
                ++d, ++slot;
                break;
            }
            case Kind::Ellipsis: {
                // The first ellipsis stands for all dimensions that no index uses, so further ellipses stand for no
                // dimension.
                int64_t rest = view.ndim() - d - index.consumed(i + 1);
                if (rest < 0) too_many(base, index);
                d += static_cast<int>(rest);
                source += static_cast<int>(rest);
                slot += static_cast<size_t>(rest);
                break;
            }
            case Kind::Bool: {
                view.unsqueeze(d++);
                choose(bool_index(item.value));
                break;
            }
            case Kind::Tensor: {
                const Tensor& t = index.tensor(item);
                bool mask = t.dtype() == DType::Bool || t.dtype() == DType::UInt8;
                int64_t n = mask ? t.dim() : 1;
                if (d + n > view.ndim()) too_many(base, index);
                choose(t);
                d += static_cast<int>(n);
                source += static_cast<int>(n);
                break;
            }
        }
    }
    return view.finish();
}

Tensor view_of(const Tensor& t, const IndexExpression& index, std::vector<Tensor>& chosen,
               std::vector<int64_t>& backwards) {
    return stages_of(t) == 0 ? apply<PlainView>(t, index, chosen, backwards)
                             : apply<RecordedView>(t, index, chosen, backwards);
}

Tensor selected(const Tensor& t, int64_t i) {
    RL_CHECK(t.dim() > 0, throw_index,
             "index: a 0-d tensor has no dimension to index\nhint: use item() to read its value");
    if (stages_of(t)) return ops::select(t, 0, wrap_index(i, t.sizes()[0], 0));
    PlainView view(t);
    view.select(0, wrap_index(i, view.size(0), 0));
    return view.finish();
}

// --- assignment ---

// Removes leading dimensions of size 1 that the target does not have, so that a value of shape (1, n) can be assigned
// to a row of shape (n,).
Tensor without_leading_ones(Tensor value, int64_t ndim) {
    int64_t drop = 0;
    while (value.dim() - drop > ndim && value.sizes()[static_cast<size_t>(drop)] == 1) ++drop;
    return drop ? ops::view(value, value.sizes().subspan(static_cast<size_t>(drop))) : value;
}

// Replaces a number that is too large for the dtype by infinity, as the assignment of a tensor does; fill_() would
// raise an error.
Scalar in_range(Scalar s, DType t) {
    if (!s.is_floating() || !is_floating(t) || t == DType::Float64) return s;
    const double v = s.to<double>();
    if (!(std::abs(v) > double{std::numeric_limits<float>::max()})) return s;
    return Scalar(std::copysign(std::numeric_limits<double>::infinity(), v));
}

Tensor value_tensor(const Tensor& target, PyObject* value) {
    if (is_tensor(value)) return unwrap(value);
    Scalar s;
    if (to_scalar(value, s)) {
        Tensor t = make_tensor({}, target.dtype());
        // A captured program stores the value as a constant, like numbers in a list.
        StagesOff untraced(kTracingStages);
        return ops::fill_(t, in_range(s, target.dtype()));
    }
    if (PyList_Check(value) || PyTuple_Check(value)) return from_sequence(value, target.dtype());
    if (PyObject_CheckBuffer(value)) return from_array(value, ArrayCopy::IfNeeded);
    throw_type("index: cannot assign %s to elements of a tensor of %s", Py_TYPE(value)->tp_name,
               name(target.dtype()));
}

// Flips an assigned value in the dimensions that are indexed backwards, except where it is broadcast.
Tensor flipped(Tensor value, int64_t ndim, const std::vector<int64_t>& backwards) {
    std::vector<int64_t> dims;
    for (int64_t d : backwards) {
        int64_t own = d - (ndim - value.dim());
        if (own >= 0 && value.sizes()[static_cast<size_t>(own)] > 1) dims.push_back(own);
    }
    return dims.empty() ? value : ops::flip(value, dims);
}

void assign_view(const Tensor& view, PyObject* value, const std::vector<int64_t>& backwards = {}) {
    Scalar s;
    if (!is_tensor(value) && to_scalar(value, s)) {
        ops::fill_(view, in_range(s, view.dtype()));
        return;
    }
    Tensor fitting = without_leading_ones(value_tensor(view, value), view.dim());
    ops::copy_(view, backwards.empty() ? fitting : flipped(std::move(fitting), view.dim(), backwards));
}

// Assigns elements of a view. If dimensions are indexed backwards, the elements are written to a flipped copy, which is
// then flipped back and copied to the view.
void assign_chosen(const Tensor& view, const std::vector<Tensor>& chosen, const Tensor& value,
                   const std::vector<int64_t>& backwards) {
    if (backwards.empty()) {
        ops::index_put_(view, chosen, value, false);
        return;
    }
    Tensor copy = ops::flip(view, backwards);
    ops::index_put_(copy, chosen, value, false);
    ops::copy_(view, ops::flip(copy, backwards));
}

bool overridden(const Tensor& t) { return stages_of(t) & bit(Stage::Python); }

}  // namespace

PyObject* get_item(PyObject* self, PyObject* index) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    if (overridden(t)) [[unlikely]] {
        PyObject* args[] = {self, index};
        if (PyObject* answer = call_override("__getitem__", args, 2)) return answer;
    }
    int64_t i;
    if (PyLong_CheckExact(index)) {
        to_int(index, i);
        return wrap(selected(t, i));
    }
    IndexExpression expression(index);
    std::vector<Tensor> chosen;
    std::vector<int64_t> backwards;
    Tensor view = view_of(t, expression, chosen, backwards);
    if (!backwards.empty()) view = ops::flip(view, backwards);
    return wrap(expression.advanced() ? ops::index(view, chosen) : view);
    RL_PY_CATCH
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
    RL_PY_TRY
    RL_CHECK(value, throw_type, "index: elements of a tensor cannot be deleted");
    const Tensor& t = unwrap(self);
    if (stages_of(t) & (bit(Stage::Python) | bit(Stage::Sparse))) [[unlikely]] {
        PyObject* args[] = {self, index, value};
        PyObject* answer = overridden(t) ? call_override("__setitem__", args, 3) : nullptr;
        if (answer) {
            Py_DECREF(answer);
            return 0;
        }
        // Indexing a sparse tensor returns a copy, so writing to the result would have no effect.
        RL_CHECK(!is_sparse(t), throw_type,
                 "index: cannot assign to a sparse tensor, got layout %s\nhint: use to_dense()",
                 layout_name(t));
    }
    int64_t i;
    if (PyLong_CheckExact(index)) {
        to_int(index, i);
        assign_view(selected(t, i), value);
        return 0;
    }
    IndexExpression expression(index);
    std::vector<Tensor> chosen;
    std::vector<int64_t> backwards;
    Tensor view = view_of(t, expression, chosen, backwards);
    if (expression.advanced()) assign_chosen(view, chosen, value_tensor(view, value), backwards);
    else assign_view(view, value, backwards);
    return 0;
    RL_PY_CATCH_INT
}

// --- iteration ---

namespace {

// Returns the rows one by one when they are needed. If operators are recorded, unbind is used instead, which records
// one node for all rows.
struct RowIterator {
    PyObject_HEAD PyObject* tensor;
    int64_t next;
};

PyTypeObject* row_iterator_type = nullptr;

void row_iterator_dealloc(PyObject* o) {
    PyObject_GC_UnTrack(o);
    Py_XDECREF(reinterpret_cast<RowIterator*>(o)->tensor);
    PyTypeObject* type = Py_TYPE(o);
    type->tp_free(o);
    Py_DECREF(type);
}

int row_iterator_traverse(PyObject* o, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(reinterpret_cast<RowIterator*>(o)->tensor);
    return 0;
}

PyObject* row_iterator_next(PyObject* o) {
    RL_PY_TRY
    auto* self = reinterpret_cast<RowIterator*>(o);
    const Tensor& t = unwrap(self->tensor);
    if (t.dim() == 0 || self->next >= t.sizes()[0]) return nullptr;
    return wrap(selected(t, self->next++));
    RL_PY_CATCH
}

}  // namespace

PyObject* tensor_iter(PyObject* self) {
    RL_PY_TRY
    const Tensor& t = unwrap(self);
    RL_CHECK(t.dim() > 0, throw_type, "iter(): a 0-d tensor cannot be iterated over");
    if (stages_of(t)) {
        Object rows = Object::steal(wrap(ops::unbind(t, 0)));
        return PyObject_GetIter(rows.get());
    }
    auto* rows = PyObject_GC_New(RowIterator, row_iterator_type);
    if (!rows) return nullptr;
    rows->tensor = Py_NewRef(self);
    rows->next = 0;
    PyObject_GC_Track(reinterpret_cast<PyObject*>(rows));
    return reinterpret_cast<PyObject*>(rows);
    RL_PY_CATCH
}

int tensor_contains(PyObject* self, PyObject* element) {
    RL_PY_TRY
    if (has_override(self)) [[unlikely]] {
        if (PyObject* answer = answer_by_class({"__contains__", nullptr}, self, &element, 1)) {
            Object value = Object::steal(answer);
            return PyObject_IsTrue(answer);
        }
    }
    Scalar s;
    RL_CHECK(is_tensor(element) || to_scalar(element, s), throw_runtime,
             "in: must be a number or a tensor, not %s", Py_TYPE(element)->tp_name);
    Object equal = Object::steal(PyObject_RichCompare(self, element, Py_EQ));
    Object any = Object::steal(PyObject_CallMethod(equal.get(), "any", nullptr));
    return PyObject_IsTrue(any.get());
    RL_PY_CATCH_INT
}

int add_indexing(PyObject*) {
    static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(row_iterator_dealloc)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(row_iterator_traverse)},
                                  {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                  {Py_tp_iternext, reinterpret_cast<void*>(row_iterator_next)},
                                  {0, nullptr}};
    static PyType_Spec spec{"rushlight_core.tensor_iterator", sizeof(RowIterator), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            slots};
    row_iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return row_iterator_type ? 0 : -1;
}

}  // namespace rushlight::python
