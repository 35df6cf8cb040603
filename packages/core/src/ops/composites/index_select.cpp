// Out-of-place writes of slices by index: each copies the input and then writes in place.
#include "bodies/index_select.h"
#include "ops/fresh.h"
#include "ops/numbers.h"
#include "ops/views.h"
#include "rushlight/ops/_scatter_reduce_.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/index_add_.h"
#include "rushlight/ops/index_copy_.h"
#include "rushlight/ops/index_fill.h"
#include "rushlight/ops/index_fill_.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros.h"

namespace rushlight::composites {
namespace {

Tensor row_major_copy(const Tensor& t) { return ops::clone(t, "contiguous"); }

// Expands the index of slices to one index for each element of `source`.
Tensor spread_index(const char* op, const Tensor& input, int64_t dim, const Tensor& index,
                    const Tensor& source, std::string_view reduce) {
    RL_CHECK(reduce != "sum", throw_runtime,
             "%s(reduce): must be prod, mean, amax or amin, got 'sum'\nhint: use index_add() for sums", op);
    RL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, throw_runtime,
             "%s(index): must be an int64 or int32 tensor, got %s", op, name(index.dtype()));
    RL_CHECK(index.dim() <= 1, throw_index, "%s(index): must have one dimension, got shape %s", op,
             to_string(index.sizes()).c_str());
    const int d = wrap_dim(op, dim, input.dim());
    bool fits = source.dim() == input.dim();
    for (int k = 0; fits && k < input.dim(); ++k)
        fits = source.sizes()[k] == (k == d ? index.numel() : input.sizes()[k]);
    RL_CHECK(fits, throw_runtime,
             "%s(source): shape %s does not match an input of shape %s with %lld indices along dimension %d",
             op, to_string(source.sizes()).c_str(), to_string(input.sizes()).c_str(),
             (long long)index.numel(), d);
    std::vector<int64_t> shape(static_cast<size_t>(source.dim()), 1);
    if (!shape.empty()) shape[static_cast<size_t>(d)] = index.numel();
    return ops::expand(ops::reshape(index, shape), source.sizes(), false);
}

}  // namespace

Tensor index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
    return fresh(ops::index_add_(row_major_copy(input), dim, index, source, alpha));
}
Tensor index_copy(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
    return fresh(ops::index_copy_(row_major_copy(input), dim, index, source));
}
Tensor index_fill(const Tensor& input, int64_t dim, const Tensor& index, Scalar value) {
    return fresh(ops::index_fill_(row_major_copy(input), dim, index, value));
}
Tensor index_fill__tensor(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& value) {
    RL_CHECK(value.dim() == 0, throw_runtime,
             "index_fill_(value): must be a number or a 0-d tensor, got shape %s",
             to_string(value.sizes()).c_str());
    const int d = wrap_dim("index_fill_", dim, input.dim());
    // Uses a mask, so that the gradient of a slice that is indexed twice is added only once.
    std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
    if (!shape.empty()) shape[static_cast<size_t>(d)] = input.sizes()[d];
    const Tensor nowhere = ops::zeros(shape, DType::Bool, input.device());
    const Tensor mask = ops::index_fill(nowhere, dim, index, Scalar(true));
    return ops::copy_(input,
                      ops::where(mask, element_tensor("index_fill_", "value", value, input.dtype()), input));
}
Tensor index_fill_tensor(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& value) {
    return fresh(index_fill__tensor(row_major_copy(input), dim, index, value));
}

Tensor index_reduce_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                     std::string_view reduce, bool include_self) {
    Tensor every = spread_index("index_reduce_", input, dim, index, source, reduce);
    return ops::_scatter_reduce_(input, dim, every, source, reduce, include_self, "index_reduce_");
}
Tensor index_reduce(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
    Tensor every = spread_index("index_reduce", input, dim, index, source, reduce);
    return fresh(ops::_scatter_reduce_(row_major_copy(input), dim, every, source, reduce, include_self,
                                       "index_reduce"));
}

}  // namespace rushlight::composites
