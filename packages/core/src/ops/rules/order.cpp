// Reordering and repetition of elements.
#include "bodies/order.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

// Returns outputs for values and their positions, with `k` elements along dimension d. Complex numbers have no order.
Outputs ordered(const char* op, const Tensor& input, int d, int64_t k) {
    RL_CHECK(!is_complex(input.dtype()), throw_not_implemented, "%s: not defined for dtype %s", op,
             name(input.dtype()));
    int64_t sizes[kMaxDims];
    std::copy(input.sizes().begin(), input.sizes().end(), sizes);
    if (input.dim() > 0) sizes[d] = k;
    const IntList shape(sizes, static_cast<size_t>(input.dim()));
    Outputs outs;
    outs.add(shape, input.dtype(), input.device());
    outs.add(shape, DType::Int64, input.device());
    return outs;
}

}  // namespace

Outputs sort(const Tensor& input, int64_t dim, bool, std::optional<bool>) {
    const int d = wrap_dim("sort", dim, input.dim());
    return ordered("sort", input, d, input.dim() ? input.sizes()[d] : 1);
}

Outputs topk(const Tensor& input, int64_t k, int64_t dim, bool, bool) {
    const int d = wrap_dim("topk", dim, input.dim());
    const int64_t n = input.dim() ? input.sizes()[d] : 1;
    RL_CHECK(k >= 0 && k <= n, throw_runtime,
             "topk(k): must be between 0 and %lld, the size of dimension %d, got %lld", (long long)n, d,
             (long long)k);
    // The result for a 0-d tensor is its only element, whatever k is.
    return ordered("topk", input, d, k);
}

Outputs flip(const Tensor& input, IntList dims) {
    uint64_t flipped = 0;
    for (int64_t dim : dims) {
        const int d = wrap_dim("flip", dim, input.dim());
        RL_CHECK(!(flipped >> d & 1), throw_runtime, "flip(dims): dimension %d is listed twice in %s", d,
                 to_string(dims).c_str());
        flipped |= uint64_t{1} << d;
    }
    Outputs outs;
    outs.like(input);
    return outs;
}

Outputs _repeat_index(const Tensor& repeats, int64_t size, int64_t count) {
    RL_CHECK(is_integral(repeats.dtype()) && repeats.dim() <= 1 &&
                 (repeats.numel() == 1 || repeats.numel() == size),
             throw_runtime, "repeat_interleave(repeats): needs 1 or %lld integers, got %s of shape %s",
             (long long)size, name(repeats.dtype()), to_string(repeats.sizes()).c_str());
    Outputs outs;
    outs.add(IntList(&count, 1), DType::Int64, repeats.device());
    return outs;
}

}  // namespace rushlight::rules
