// Selection of nonzero elements, and of elements by a mask.
#include "bodies/masking.h"
#include "ops/broadcasting.h"

namespace rushlight::rules {

namespace {
Outputs coordinates(const Tensor& input, int64_t count) {
    Outputs outs;
    const int64_t sizes[] = {count, input.dim()};
    outs.add(sizes, DType::Int64, input.device());
    return outs;
}
}  // namespace

// The result is column-major, because each of its columns is used as an index tensor, and contiguous index tensors are
// read fastest.
Outputs nonzero(const Tensor& input, int64_t count) {
    Outputs outs = coordinates(input, count);
    outs.by_columns();
    return outs;
}

Outputs nonzero_static(const Tensor& input, int64_t size, int64_t) {
    RL_CHECK(size >= 0, throw_runtime, "nonzero_static(size): must not be negative, got %lld",
             (long long)size);
    return coordinates(input, size);
}

Outputs _masked_elements(const Tensor& input, const Tensor& mask, int64_t count) {
    RL_CHECK(mask.dtype() == DType::Bool && mask.shape() == input.shape(), throw_runtime,
             "masked_elements(mask): must be a bool tensor of shape %s, got %s %s",
             to_string(input.sizes()).c_str(), name(mask.dtype()), to_string(mask.sizes()).c_str());
    Outputs outs;
    outs.add(IntList(&count, 1), input.dtype(), input.device());
    return outs;
}

Outputs masked_scatter_(const Tensor& input, const Tensor& mask, const Tensor& source) {
    RL_CHECK(mask.dtype() == DType::Bool, throw_runtime,
             "masked_scatter_(mask): must be a bool tensor, got %s", name(mask.dtype()));
    RL_CHECK(source.dtype() == input.dtype(), throw_runtime,
             "masked_scatter_(source): must have input's dtype %s, got %s", name(input.dtype()),
             name(source.dtype()));
    RL_CHECK(
        broadcast_shapes("masked_scatter_", "input", input.sizes(), "mask", mask.sizes()) == input.shape(),
        throw_runtime, "masked_scatter_(mask): shape %s does not broadcast to input's shape %s",
        to_string(mask.sizes()).c_str(), to_string(input.sizes()).c_str());
    return {};
}

}  // namespace rushlight::rules
