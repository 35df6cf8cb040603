// Positions in sorted sequences, membership and unique elements.
#include "bodies/searching.h"

namespace rushlight::rules {
namespace {

void ordered(const char* op, const Tensor& input) {
    RL_CHECK(!is_complex(input.dtype()), throw_not_implemented, "%s: not defined for dtype %s", op,
             name(input.dtype()));
}

// Returns outputs for the unique values, for the index of each element's value in them, and for the number of occurrences.
Outputs distinct(const Tensor& input, IntList values, IntList inverse, bool return_inverse,
                 bool return_counts, int64_t count) {
    ordered("unique", input);
    const int64_t none = 0;
    Outputs outs;
    outs.add(values, input.dtype(), input.device());
    outs.add(return_inverse ? inverse : IntList(&none, 1), DType::Int64, input.device());
    outs.add(IntList(return_counts ? &count : &none, 1), DType::Int64, input.device());
    return outs;
}

}  // namespace

Outputs _searchsorted(const Tensor& sorted_sequence, const Tensor& input, const Tensor& sorter,
                      bool out_int32, bool) {
    ordered("searchsorted", input);
    same_dtype("searchsorted", "sorted_sequence", sorted_sequence, "input", input);
    const IntList shape = input.sizes(), all = sorted_sequence.sizes();
    RL_CHECK(all.size() == 1 || (all.size() == shape.size() && all.size() > 1 &&
                                 std::equal(shape.begin(), shape.end() - 1, all.begin())),
             throw_runtime,
             "searchsorted(boundaries, input): shapes %s and %s must agree except in the last dimension, or "
             "boundaries must have one dimension",
             to_string(all).c_str(), to_string(shape).c_str());
    RL_CHECK(
        !sorter.defined() || (sorter.dtype() == DType::Int64 && sorter.shape() == sorted_sequence.shape()),
        throw_runtime, "searchsorted(sorter): must be an int64 tensor of shape %s, got %s %s",
        to_string(all).c_str(), name(sorter.dtype()), to_string(sorter.sizes()).c_str());
    Outputs outs;
    outs.add(shape, out_int32 ? DType::Int32 : DType::Int64, input.device());
    return outs;
}

Outputs _isin_sorted(const Tensor& input, const Tensor& sorted, bool) {
    ordered("isin", input);
    same_dtype("isin", "elements", input, "test_elements", sorted);
    Outputs outs;
    outs.add(input.sizes(), DType::Bool, input.device());
    return outs;
}

Outputs _unique_elements(const Tensor& input, bool, bool return_inverse, bool return_counts, int64_t count) {
    return distinct(input, IntList(&count, 1), input.sizes(), return_inverse, return_counts, count);
}
Outputs _unique_rows(const Tensor& input, bool, bool return_inverse, bool return_counts, int64_t count) {
    RL_CHECK(input.dim() > 0, throw_runtime,
             "unique_rows(input): needs at least 1 dimension, got a 0-d tensor");
    int64_t sizes[kMaxDims];
    std::copy(input.sizes().begin(), input.sizes().end(), sizes);
    const int64_t n = sizes[0];
    sizes[0] = count;
    return distinct(input, IntList(sizes, static_cast<size_t>(input.dim())), IntList(&n, 1), return_inverse,
                    return_counts, count);
}

}  // namespace rushlight::rules
