// Hashes of elements: the bits of each as a number of 64 bits, joined by exclusive or.
#include <functional>
#include <numeric>

#include "bodies/permutation.h"
#include "bodies/reduction.h"
#include "ops/direct/lines.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

constexpr const char* kOp = "hash_tensor";

// As float64 or in 64 bits, which tells equal numbers of different dtypes alike.
DType wide(DType t) {
    RL_CHECK(!is_complex(t), throw_not_implemented, "%s: not defined for dtype %s", kOp, name(t));
    if (is_floating(t)) return DType::Float64;
    return t == DType::UInt64 ? t : DType::Int64;
}

}  // namespace

Tensor hash_tensor_dim(const Tensor& input, IntList dim, bool keepdim, int64_t mode) {
    host_only(kOp, input);
    RL_CHECK(mode == 0, throw_runtime, "%s(mode): needs 0, exclusive or, got %lld", kOp, (long long)mode);
    bool reduced[kMaxDims] = {};
    for (int64_t given : dim) {
        const int d = wrap_dim(kOp, given, input.dim());
        RL_CHECK(!reduced[d], throw_runtime, "%s(dim): dimension %d is listed twice", kOp, d);
        reduced[d] = true;
    }
    if (dim.empty()) std::fill_n(reduced, kMaxDims, true);
    std::vector<int64_t> order, shape;
    int64_t inner = 1;
    for (int d = 0; d < input.dim(); ++d) {
        if (!reduced[d]) order.push_back(d);
        if (!reduced[d] || keepdim) shape.push_back(reduced[d] ? 1 : input.sizes()[d]);
        if (reduced[d]) inner *= input.sizes()[d];
    }
    for (int d = 0; d < input.dim(); ++d)
        if (reduced[d]) order.push_back(d);
    const DType dtype = wide(input.dtype());
    Tensor out = make_tensor(shape, DType::UInt64, input.device());
    if (is_meta(input)) return out;
    const Tensor rows = row_major(take_view(input, views::permute(input, order)), dtype);
    const uint64_t* bits = static_cast<const uint64_t*>(rows.impl()->data());
    parallel_for(0, out.numel(), std::max<int64_t>(1, (1 << 15) / (inner + 1)),
                 [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                         out.data<uint64_t>()[i] = std::accumulate(bits + i * inner, bits + (i + 1) * inner,
                                                                   uint64_t{0}, std::bit_xor<uint64_t>());
                 });
    return out;
}

}  // namespace rushlight::direct
