#include "cpu/padding.h"

#include "cpu/contiguous.h"
#include "cpu/padding_kernels.h"
#include "ops/functors/padding.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kWork = 1 << 15;  // minimum number of elements per thread

// Returns, for each index of the padded dimension, the index of the input from which the element is copied.
const int64_t* sources(KernelContext& ctx, int64_t size, int64_t before, int64_t padded, PadMode mode) {
    auto* from = scratch<int64_t>(ctx, padded);
    for (int64_t i = 0; i < padded; ++i) from[i] = functors::padded_from(i - before, size, mode);
    return from;
}

// The dimensions of the views `small` and `large` are in the order of memory. If `channels_last` is true, their last
// dimension is the second dimension of the tensor.
PaddedPlanes planes_of(KernelContext& ctx, const View& small, const View& large, Ints padding,
                       std::string_view mode_name, bool channels_last) {
    const PadMode mode = pad_mode_of(mode_name);
    PaddedPlanes p;
    int first = 0, last = small.ndim;
    while (first < last && small.sizes[first] == large.sizes[first]) p.planes *= small.sizes[first++];
    while (last > first && small.sizes[last - 1] == large.sizes[last - 1]) p.inner *= small.sizes[--last];
    for (int d = first; d < last; ++d) {
        const int in_tensor = !channels_last || d == 0 ? d : d == small.ndim - 1 ? 1 : d + 1;
        const int64_t from_last = small.ndim - 1 - in_tensor, size = small.sizes[d], padded = large.sizes[d];
        const int64_t before = 2 * from_last < padding.size ? padding[2 * from_last] : 0;
        p.dims[p.ndim++] = {size, padded, before, sources(ctx, size, before, padded, mode)};
    }
    if (p.ndim == 0) p.dims[p.ndim++] = {1, 1, 0, sources(ctx, 1, 0, 1, mode)};
    for (int d = 0; d < p.ndim; ++d) {
        p.small *= p.dims[d].size;
        p.large *= p.dims[d].padded;
    }
    p.small *= p.inner;
    p.large *= p.inner;
    return p;
}

}  // namespace

void pad(KernelContext& ctx, const View& out, const View& input, Ints padding, std::string_view mode) {
    if (out.numel == 0) return;
    const bool last = is_channels_last(out);
    const View dense = contiguous_in(ctx, last ? channels_inside(ctx, input) : input);
    const PaddedPlanes p = planes_of(ctx, dense, last ? channels_inside(ctx, out) : out, padding, mode, last);
    parallel_for(0, p.planes, kWork / p.large + 1, [&](int64_t begin, int64_t end) {
        padding_kernels().extend(p, out.data, dense.data, itemsize(out.dtype), begin, end);
    });
}

void pad_backward(KernelContext& ctx, const View& out, const View& grad, Ints padding,
                  std::string_view mode) {
    if (out.numel == 0) return;
    const bool last = is_channels_last(out);
    const View dense = contiguous_in(ctx, last ? channels_inside(ctx, grad) : grad);
    const PaddedPlanes p = planes_of(ctx, last ? channels_inside(ctx, out) : out, dense, padding, mode, last);
    const auto fold = padding_kernels().fold[static_cast<int>(out.dtype)];
    parallel_for(0, p.planes, kWork / p.large + 1,
                 [&](int64_t begin, int64_t end) { fold(p, out.data, dense.data, begin, end); });
}

}  // namespace rushlight::cpu
