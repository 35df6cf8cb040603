// Selection of slices along a dimension by index.
#include "bodies/index_select.h"
#include "ops/numbers.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

void check_index(const char* op, const Tensor& index) {
    RL_CHECK(index.dim() <= 1, throw_index, "%s(index): must have one dimension, got shape %s", op,
             to_string(index.sizes()).c_str());
}
void integers_only(const char* op, const Tensor& index) {
    RL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, throw_runtime,
             "%s(index): must be int32 or int64, got %s", op, name(index.dtype()));
}
void same_dtype_as_input(const char* op, const Tensor& input, const Tensor& source) {
    RL_CHECK(source.dtype() == input.dtype(), throw_runtime, "%s(source): must have input's dtype %s, got %s",
             op, name(input.dtype()), name(source.dtype()));
}

}  // namespace

Outputs index_select(const Tensor& input, int64_t dim, const Tensor& index) {
    const char* op = "index_select";
    check_index(op, index);
    integers_only(op, index);
    const int d = wrap_dim(op, dim, input.dim());
    RL_CHECK(input.dim() > 0 || index.numel() == 1, throw_runtime,
             "index_select(index): must have one element if the input is 0-d, got %lld indices",
             (long long)index.numel());
    int64_t sizes[kMaxDims];
    std::copy(input.sizes().begin(), input.sizes().end(), sizes);
    if (input.dim() > 0) sizes[d] = index.numel();
    Outputs outs;
    outs.add(IntList(sizes, static_cast<size_t>(input.dim())), input.dtype(), input.device());
    return outs;
}

Outputs index_add_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                   Scalar alpha) {
    const char* op = "index_add_";
    const int d = wrap_dim(op, dim, input.dim());
    integers_only(op, index);
    RL_CHECK(category(alpha.dtype()) <= std::max(category(input.dtype()), DTypeCategory::Integral),
             throw_runtime,
             "index_add_(alpha): a number of dtype %s does not fit a tensor of dtype %s\n"
             "hint: convert the tensors first",
             name(alpha.dtype()), name(input.dtype()));
    check_index(op, index);
    same_dtype_as_input(op, input, source);
    bool fits = source.dim() == input.dim() && (input.dim() > 0 || index.numel() == 1);
    for (int64_t k = 0; fits && k < input.dim(); ++k)
        fits = source.sizes()[k] == (k == d ? index.numel() : input.sizes()[k]);
    RL_CHECK(fits, throw_runtime,
             "index_add_(source): shape %s does not match an input of shape %s with %lld indices along "
             "dimension %d",
             to_string(source.sizes()).c_str(), to_string(input.sizes()).c_str(), (long long)index.numel(),
             d);
    return {};
}

Outputs index_copy_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
    const char* op = "index_copy_";
    const int d = wrap_dim(op, dim, input.dim());
    RL_CHECK(index.dtype() == DType::Int64, throw_runtime, "%s(index): must be an int64 tensor, got %s", op,
             name(index.dtype()));
    check_index(op, index);
    same_dtype_as_input(op, input, source);
    RL_CHECK((source.dim() == 0 ? 1
              : input.dim()     ? source.size(d)
                                : source.numel()) == index.numel(),
             throw_index, "index_copy_(source): needs a slice for each of the %lld indices, got shape %s",
             (long long)index.numel(), to_string(source.sizes()).c_str());
    bool fits = source.dim() == input.dim() || source.dim() + input.dim() <= 1;
    for (int k = 0; fits && k < source.dim() && k < input.dim(); ++k)
        fits = k == d || source.sizes()[k] == input.sizes()[k];
    RL_CHECK(fits, throw_runtime,
             "index_copy_(source): shape %s must equal the input's shape %s except along dimension %d",
             to_string(source.sizes()).c_str(), to_string(input.sizes()).c_str(), d);
    return {};
}

Outputs index_fill_(const Tensor& input, int64_t dim, const Tensor& index, Scalar value) {
    const char* op = "index_fill_";
    wrap_dim(op, dim, input.dim());
    RL_CHECK(index.dtype() == DType::Int64, throw_index, "%s(index): must be an int64 tensor, got %s", op,
             name(index.dtype()));
    RL_CHECK(index.dim() <= 1, throw_runtime, "%s(index): must have one dimension, got shape %s", op,
             to_string(index.sizes()).c_str());
    element_of(op, "value", value, input.dtype());
    return {};
}

}  // namespace rushlight::rules
