#include "cpu/metric.h"

#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/metric_kernels.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Minimum number of differences per thread.
constexpr int64_t kWork = 1 << 15;

}  // namespace

void cdist_rows(KernelContext& ctx, const View& out, const View& a, const View& b, double p) {
    if (out.numel == 0) return;
    const View rows = contiguous_in(ctx, a), others = contiguous_in(ctx, b);
    const auto size = static_cast<int64_t>(itemsize(a.dtype));
    const int64_t all = a.sizes[0] * a.sizes[1], count = b.sizes[1], n = b.sizes[2];
    const auto distances = metric_kernels().distances[static_cast<int>(a.dtype)];
    parallel_for(0, all, kWork / std::max<int64_t>(count * n, 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            distances(out.as<char>() + i * count * size, rows.as<char>() + i * n * size,
                      others.as<char>() + i / a.sizes[1] * count * n * size, count, n, p);
    });
}

void cdist_gradient(KernelContext& ctx, const View& out, const View& grad, const View& a, const View& b,
                    const View& distances, double p) {
    if (out.numel == 0) return;
    const View grads = contiguous_in(ctx, grad), rows = contiguous_in(ctx, a), others = contiguous_in(ctx, b),
               far = contiguous_in(ctx, distances);
    const auto size = static_cast<int64_t>(itemsize(a.dtype));
    const int64_t all = a.sizes[0] * a.sizes[1], count = b.sizes[1], n = b.sizes[2];
    const int64_t chunks = std::min<int64_t>({num_threads(), all, all * count * n / kWork + 1});
    const auto gradient = metric_kernels().gradient[static_cast<int>(a.dtype)];
    char* factors = scratch<char>(ctx, chunks * count * size);
    parallel_chunks(chunks, [&](int64_t c) {
        for (int64_t i = all * c / chunks; i < all * (c + 1) / chunks; ++i)
            gradient(out.as<char>() + i * n * size, grads.as<char>() + i * count * size,
                     rows.as<char>() + i * n * size, others.as<char>() + i / a.sizes[1] * count * n * size,
                     far.as<char>() + i * count * size, count, n, p, factors + c * count * size);
    });
}

}  // namespace rushlight::cpu
