// Lookup of the rows of a table.
#include "bodies/embedding.h"

namespace rushlight::rules {
namespace {

void check_indices(const char* op, const Tensor& indices) {
    RL_CHECK(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, throw_runtime,
             "%s(indices): needs int64 or int32 row numbers, got dtype %s", op, name(indices.dtype()));
}

}  // namespace

Outputs embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
    RL_CHECK(weight.dim() == 2, throw_runtime, "embedding(weight): needs a table (rows, width), got shape %s",
             to_string(weight.sizes()).c_str());
    check_indices("embedding", indices);
    int64_t sizes[kMaxDims + 1];
    std::copy(indices.sizes().begin(), indices.sizes().end(), sizes);
    sizes[indices.dim()] = weight.impl()->size(1);
    RL_CHECK(indices.dim() < kMaxDims, throw_runtime,
             "a tensor has at most %d dimensions, but the result would have %lld", kMaxDims,
             (long long)indices.dim() + 1);
    Outputs outs;
    outs.add(IntList(sizes, static_cast<size_t>(indices.dim()) + 1), weight.dtype(), weight.device());
    return outs;
}

Outputs embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& bags, int64_t count, double,
                      int64_t, bool, bool) {
    const char* op = "embedding_bag";
    RL_CHECK(weight.dim() == 2, throw_runtime, "%s(weight): needs a table (rows, width), got shape %s", op,
             to_string(weight.sizes()).c_str());
    floating_only(op, weight);
    check_indices(op, indices);
    RL_CHECK(indices.dim() == 1 && bags.dim() == 1 && bags.dtype() == DType::Int64 &&
                 bags.numel() == indices.numel(),
             throw_runtime, "%s(bags): must be int64 and have the shape of the row numbers, %s, got %s %s",
             op, to_string(indices.sizes()).c_str(), name(bags.dtype()), to_string(bags.sizes()).c_str());
    RL_CHECK(count >= 0, throw_runtime, "%s(count): must not be negative, got %lld", op, (long long)count);
    Outputs outs;
    const int64_t sizes[] = {count, weight.impl()->size(1)};
    outs.add(sizes, weight.dtype(), weight.device());
    return outs;
}

Outputs embedding_dense_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t,
                                 bool) {
    if (!is_complex(grad.dtype())) floating_only("embedding_dense_backward", grad);
    check_indices("embedding_dense_backward", indices);
    RL_CHECK(grad.dim() == indices.dim() + 1 &&
                 std::equal(indices.sizes().begin(), indices.sizes().end(), grad.sizes().begin()),
             throw_runtime, "embedding_dense_backward(grad): shape %s does not match indices of shape %s",
             to_string(grad.sizes()).c_str(), to_string(indices.sizes()).c_str());
    Outputs outs;
    const int64_t sizes[] = {num_weights, grad.size(-1)};
    outs.add(sizes, grad.dtype(), grad.device());
    return outs;
}

}  // namespace rushlight::rules
