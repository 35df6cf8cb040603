#include "cpu/hashing.h"

#include <functional>
#include <numeric>

#include "cpu/contiguous.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {

void hash_tensor(KernelContext& ctx, const View& out, const View& input, Ints dims) {
    if (out.numel == 0) return;
    uint64_t reduced = dims.size == 0 ? ~uint64_t{0} : 0;
    for (int64_t dim : dims) reduced |= uint64_t{1} << (dim < 0 ? dim + std::max(input.ndim, 1) : dim);
    // Moves the reduced dimensions behind the others.
    View rows = input;
    auto* geometry = scratch<int64_t>(ctx, 2 * input.ndim);
    int at = 0;
    for (uint64_t behind : {0, 1})
        for (int d = 0; d < input.ndim; ++d)
            if ((reduced >> d & 1) == behind) {
                geometry[at] = input.sizes[d];
                geometry[input.ndim + at++] = input.strides[d];
            }
    rows.sizes = geometry;
    rows.strides = geometry + input.ndim;
    const DType wide = is_floating(input.dtype)       ? DType::Float64
                       : input.dtype == DType::UInt64 ? DType::UInt64
                                                      : DType::Int64;
    const auto* bits = contiguous_in(ctx, leading(rows, rows), wide).as<uint64_t>();
    const int64_t n = input.numel / out.numel;
    parallel_for(0, out.numel, (1 << 15) / (n + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            out.as<uint64_t>()[i] =
                std::accumulate(bits + i * n, bits + (i + 1) * n, uint64_t{0}, std::bit_xor<uint64_t>());
    });
}

}  // namespace rushlight::cpu
