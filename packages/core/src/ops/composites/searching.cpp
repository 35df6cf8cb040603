#include "bodies/searching.h"
#include "ops/views.h"
#include "rushlight/ops/_isin_sorted.h"
#include "rushlight/ops/_searchsorted.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/_unique_elements.h"
#include "rushlight/ops/_unique_rows.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/floor_divide.h"
#include "rushlight/ops/full.h"
#include "rushlight/ops/movedim.h"
#include "rushlight/ops/remainder.h"
#include "rushlight/ops/sort.h"
#include "tensor/promotion.h"

namespace rushlight::composites {
namespace {

Tensor as(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : ops::_to_copy(t, dtype); }

// Converts a number to a tensor.
Tensor tensor_of(const char* op, const TensorOrScalar& v, DType dtype, Device device) {
    if (v.is_tensor()) return as(v.tensor(), dtype);
    const Scalar number = v.scalar();
    RL_CHECK(!number.is_complex() || is_complex(dtype), throw_runtime,
             "%s: a complex number does not fit a tensor of dtype %s", op, name(dtype));
    return as(ops::full({}, number, number.dtype(), device), dtype);
}
void check_ordered(const char* op, DType dtype) {
    RL_CHECK(!is_complex(dtype), throw_not_implemented, "%s: not defined for dtype %s", op, name(dtype));
}

Tensor search(const char* op, const Tensor& sequences, const TensorOrScalar& wanted, bool out_int32,
              bool right, const Tensor& sorter) {
    const TensorOrScalar both[] = {sequences, wanted};
    const DType dtype = result_dtype(both);
    RL_CHECK(sequences.dim() > 0, throw_runtime,
             "%s(boundaries): needs at least one dimension, got a 0-d tensor", op);
    RL_CHECK(wanted.is_tensor() || sequences.dim() == 1, throw_runtime,
             "%s(boundaries): must have one dimension if input is a number, got shape %s", op,
             to_string(sequences.sizes()).c_str());
    const IntList shape = wanted.is_tensor() ? wanted.tensor().sizes() : IntList();
    bool fits = sequences.dim() == 1;
    if (!fits && shape.size() == static_cast<size_t>(sequences.dim()))
        fits = std::equal(shape.begin(), shape.end() - 1, sequences.sizes().begin());
    RL_CHECK(
        fits, throw_runtime,
        "%s(boundaries, input): shapes %s and %s must agree except in the last dimension, or boundaries must have one dimension",
        op, to_string(sequences.sizes()).c_str(), to_string(shape).c_str());
    const int64_t n = sequences.size(-1);
    RL_CHECK(!out_int32 || n <= INT32_MAX, throw_runtime,
             "%s(out_int32): %lld boundaries are too many for int32", op, (long long)n);
    if (sorter.defined()) {
        RL_CHECK(sorter.dtype() == DType::Int64, throw_runtime, "%s(sorter): must be an int64 tensor, got %s",
                 op, name(sorter.dtype()));
        RL_CHECK(sorter.shape() == sequences.shape(), throw_runtime, "%s(sorter): needs the shape %s, got %s",
                 op, to_string(sequences.sizes()).c_str(), to_string(sorter.sizes()).c_str());
    }
    check_ordered(op, dtype);
    return ops::_searchsorted(as(sequences, dtype), tensor_of(op, wanted, dtype, sequences.device()), sorter,
                              out_int32, right);
}

bool from_right(bool right, std::optional<std::string_view> side) {
    if (!side) return right;
    RL_CHECK(*side == "left" || *side == "right", throw_runtime,
             "searchsorted(side): must be 'left' or 'right', got '%.*s'", static_cast<int>(side->size()),
             side->data());
    RL_CHECK(!(right && *side == "left"), throw_runtime,
             "searchsorted(side): must not be 'left' if right=True");
    return *side == "right";
}

}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool out_int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
    return search("searchsorted", sorted_sequence, input, out_int32, from_right(right, side), sorter);
}
Tensor searchsorted_number(const Tensor& sorted_sequence, Scalar input, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor& sorter) {
    return search("searchsorted", sorted_sequence, input, out_int32, from_right(right, side), sorter);
}
Tensor bucketize(const Tensor& input, const Tensor& boundaries, bool out_int32, bool right) {
    RL_CHECK(boundaries.dim() == 1, throw_runtime,
             "bucketize(boundaries): must have one dimension, got shape %s",
             to_string(boundaries.sizes()).c_str());
    return search("bucketize", boundaries, input, out_int32, right, Tensor());
}
Tensor bucketize_number(Scalar input, const Tensor& boundaries, bool out_int32, bool right) {
    RL_CHECK(boundaries.dim() == 1, throw_runtime,
             "bucketize(boundaries): must have one dimension, got shape %s",
             to_string(boundaries.sizes()).c_str());
    return search("bucketize", boundaries, input, out_int32, right, Tensor());
}

Tensor isin(const TensorOrScalar& elements, const TensorOrScalar& test_elements, bool, bool invert) {
    const char* op = "isin";
    RL_CHECK(elements.is_tensor() || test_elements.is_tensor(), throw_type,
             "isin(elements, test_elements): at least one of them must be a tensor");
    const TensorOrScalar both[] = {elements, test_elements};
    for (const TensorOrScalar& one : both)
        RL_CHECK(!one.is_tensor() || one.tensor().dtype() != DType::Bool, throw_runtime,
                 "isin: not defined for dtype bool");
    const DType dtype = result_dtype(both);
    check_ordered(op, dtype);
    const Device device = (elements.is_tensor() ? elements : test_elements).tensor().device();
    const Tensor known = ops::flatten(tensor_of(op, test_elements, dtype, device));
    return ops::_isin_sorted(tensor_of(op, elements, dtype, device), std::get<0>(ops::sort(known, 0)),
                             invert);
}

std::tuple<Tensor, Tensor, Tensor> _unique(const Tensor& input, std::optional<int64_t> dim, bool consecutive,
                                           bool return_inverse, bool return_counts, std::string_view caller) {
    const std::string owned(caller);
    const char* op = owned.c_str();
    check_ordered(op, input.dtype());
    RL_CHECK(input.device().type != DeviceType::Meta, throw_not_implemented,
             "%s: the shape of the result depends on values, which a meta tensor does not have", op);
    if (!dim) return ops::_unique_elements(input, consecutive, return_inverse, return_counts);
    RL_CHECK(input.dim() > 0, throw_index, "%s(dim): a 0-d tensor has no dimension %lld", op,
             (long long)*dim);
    const int64_t d = wrap_dim(op, *dim, input.dim());
    for (int k = 0; k < input.dim(); ++k)
        RL_CHECK(k == d || input.sizes()[k] > 0, throw_runtime,
                 "%s(input): slices of shape %s along dimension %lld have no elements to compare", op,
                 to_string(input.sizes()).c_str(), (long long)d);
    const IntList along(&d, 1);
    auto [rows, inverse, counts] =
        ops::_unique_rows(ops::movedim(input, along, kInts<0>), consecutive, return_inverse, return_counts);
    return {ops::clone(ops::movedim(rows, kInts<0>, along), "contiguous"), inverse, counts};
}

std::vector<Tensor> unravel_index(const Tensor& indices, IntList shape) {
    RL_CHECK(is_integral(indices.dtype()), throw_type,
             "unravel_index(indices): must be an integer tensor, got %s", name(indices.dtype()));
    int64_t count = 1;
    for (int64_t n : shape) {
        RL_CHECK(n >= 0, throw_value, "unravel_index(shape): sizes must not be negative, got %s",
                 to_string(shape).c_str());
        count *= n != 0;
    }
    RL_CHECK(count || indices.numel() == 0, throw_value, "unravel_index(shape): %s has no elements",
             to_string(shape).c_str());
    std::vector<Tensor> coordinates(shape.size());
    Tensor rest = indices.dtype() == DType::Int64 ? indices : ops::_to_copy(indices, DType::Int64);
    for (size_t d = shape.size(); d-- > 0;) {
        coordinates[d] = count ? ops::remainder(rest, Scalar(shape[d])) : ops::clone(rest);
        if (count && d > 0) rest = ops::floor_divide(rest, Scalar(shape[d]));
    }
    return coordinates;
}

}  // namespace rushlight::composites
