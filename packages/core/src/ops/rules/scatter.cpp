// Reads and writes at scattered positions: gather, scatter and similar operators along a dimension, take and put by flat
// index.
#include "bodies/scatter.h"
#include "ops/numbers.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

// A 0-d tensor is treated like a tensor with one dimension of size 1.
int64_t dims_of(const Tensor& t) { return std::max<int64_t>(t.dim(), 1); }
int64_t size_of(const Tensor& t, int64_t d) { return t.dim() ? t.sizes()[d] : 1; }

// An empty index may have any shape and dtype.
void check_along(const char* op, const Tensor& input, int64_t dim, const Tensor& index) {
    const int d = wrap_dim(op, dim, input.dim());
    if (index.numel() == 0) return;
    RL_CHECK(is_integral(index.dtype()), throw_runtime, "%s(index): must be an integer tensor, got %s", op,
             name(index.dtype()));
    RL_CHECK(
        dims_of(index) == dims_of(input), throw_runtime,
        "%s(index): must have the same number of dimensions as input, got shapes %s (index) and %s (input)",
        op, to_string(index.sizes()).c_str(), to_string(input.sizes()).c_str());
    for (int64_t k = 0; k < index.dim(); ++k)
        RL_CHECK(k == d || input.dim() == 0 || index.sizes()[k] <= input.sizes()[k], throw_runtime,
                 "%s(index): shape %s must not be larger than input's shape %s in dimension %lld", op,
                 to_string(index.sizes()).c_str(), to_string(input.sizes()).c_str(), (long long)k);
}

void check_dtype(const char* op, const char* argument, const Tensor& input, const Tensor& source) {
    RL_CHECK(source.dtype() == input.dtype(), throw_runtime, "%s(%s): must have input's dtype %s, got %s", op,
             argument, name(input.dtype()), name(source.dtype()));
}

Outputs scattered(const char* op, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    check_along(op, input, dim, index);
    bool covers = index.numel() == 0 || dims_of(src) == dims_of(index);
    for (int64_t k = 0; covers && index.numel() > 0 && k < dims_of(index); ++k)
        covers = size_of(index, k) <= size_of(src, k);
    RL_CHECK(covers, throw_runtime,
             "%s(index, src): index must not be larger than src in any dimension, got shapes %s and %s", op,
             to_string(index.sizes()).c_str(), to_string(src.sizes()).c_str());
    check_dtype(op, "src", input, src);
    return {};
}

void int64_only(const char* op, const Tensor& index) {
    RL_CHECK(index.dtype() == DType::Int64, throw_runtime, "%s(index): must be an int64 tensor, got %s", op,
             name(index.dtype()));
}

}  // namespace

Outputs gather(const Tensor& input, int64_t dim, const Tensor& index, bool sparse_grad) {
    RL_CHECK(!sparse_grad, throw_not_implemented, "gather(sparse_grad=True): not supported");
    check_along("gather", input, dim, index);
    Outputs outs;
    outs.add(index.sizes(), input.dtype(), input.device());
    return outs;
}

Outputs scatter_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    return scattered("scatter_", input, dim, index, src);
}
Outputs scatter__value(const Tensor& input, int64_t dim, const Tensor& index, Scalar value) {
    check_along("scatter_", input, dim, index);
    // For half precision, a value beyond the dtype's range becomes infinite.
    const bool half = input.dtype() == DType::Float16 || input.dtype() == DType::BFloat16;
    element_of("scatter_", "value", value, half ? DType::Float32 : input.dtype());
    return {};
}
Outputs scatter_add_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    return scattered("scatter_add_", input, dim, index, src);
}

Outputs _scatter_reduce_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce, bool, std::string_view caller) {
    const std::string owned(caller);
    const char* op = owned.c_str();
    const bool extreme = reduce == "amax" || reduce == "amin", mean = reduce == "mean";
    RL_CHECK(extreme || mean || reduce == "sum" || reduce == "prod", throw_runtime,
             "%s(reduce): must be sum, prod, mean, amax or amin, got '%.*s'", op,
             static_cast<int>(reduce.size()), reduce.data());
    check_dtype(op, "src", input, src);
    RL_CHECK(!(mean && input.dtype() == DType::Bool), throw_not_implemented,
             "%s(reduce): the mean of bools is not defined", op);
    RL_CHECK(!(extreme && is_complex(input.dtype())), throw_not_implemented,
             "%s(reduce): amax and amin are not defined for complex dtypes", op);
    const int d = wrap_dim(op, dim, input.dim());
    if (index.numel() == 0) return {};  // may have any shape and dtype
    RL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, throw_runtime,
             "%s(index): must be an int64 or int32 tensor, got %s", op, name(index.dtype()));
    bool fits = dims_of(index) == dims_of(input) && std::ranges::equal(index.sizes(), src.sizes());
    for (int k = 0; fits && k < index.dim(); ++k) fits = k == d || index.sizes()[k] <= size_of(input, k);
    RL_CHECK(fits, throw_runtime,
             "%s(index, src): shapes %s and %s must be equal and, except along dim, no larger than input's "
             "shape %s",
             op, to_string(index.sizes()).c_str(), to_string(src.sizes()).c_str(),
             to_string(input.sizes()).c_str());
    return {};
}

Outputs take(const Tensor& input, const Tensor& index) {
    int64_only("take", index);
    Outputs outs;
    outs.add(index.sizes(), input.dtype(), input.device());
    return outs;
}

Outputs put_(const Tensor& input, const Tensor& index, const Tensor& source, bool) {
    int64_only("put_", index);
    check_dtype("put_", "source", input, source);
    RL_CHECK(index.numel() == source.numel(), throw_index,
             "put_(source): needs an element for each of the %lld indices, got shape %s",
             (long long)index.numel(), to_string(source.sizes()).c_str());
    return {};
}

}  // namespace rushlight::rules
