// Hashes of tensors.
#include "bodies/reduction.h"
#include "ops/views.h"

namespace rushlight::rules {

Outputs hash_tensor_dim(const Tensor& input, IntList dim, bool keepdim, int64_t mode) {
    constexpr const char* op = "hash_tensor";
    RL_CHECK(!is_complex(input.dtype()), throw_not_implemented, "%s: not defined for dtype %s", op,
             name(input.dtype()));
    RL_CHECK(mode == 0, throw_runtime, "%s(mode): must be 0 (XOR), got %lld", op, (long long)mode);
    bool reduced[kMaxDims] = {};
    for (int64_t given : dim) {
        const int d = wrap_dim(op, given, input.dim());
        RL_CHECK(!reduced[d], throw_runtime, "%s(dim): dimension %d is listed twice", op, d);
        reduced[d] = true;
    }
    int64_t sizes[kMaxDims];
    size_t n = 0;
    for (int d = 0; d < input.dim(); ++d) {
        if (!dim.empty() && !reduced[d]) sizes[n++] = input.sizes()[d];
        else if (keepdim) sizes[n++] = 1;
    }
    Outputs outs;
    outs.add(IntList(sizes, n), DType::UInt64, input.device());
    return outs;
}

}  // namespace rushlight::rules
