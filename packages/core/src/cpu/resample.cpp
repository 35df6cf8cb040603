#include "cpu/resample.h"

#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/grid_sample_kernels.h"
#include "cpu/resample_kernels.h"
#include "ops/functors/resample.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

template <class T> const ResampleLoops<T>& loops();
template <> const ResampleLoops<float>& loops() { return resample_kernels().f32; }
template <> const ResampleLoops<double>& loops() { return resample_kernels().f64; }

// Computes the taps of all output positions in scratch memory.
template <class T>
Taps<T> table(KernelContext& ctx, const functors::Resampling& r) {
    const int64_t taps = r.taps<T>();
    auto* index = scratch<int64_t>(ctx, r.out * taps);
    T* weight = scratch<T>(ctx, r.out * taps);
    for (int64_t j = 0; j < r.out; ++j) r.taps_of(j, index + j * taps, weight + j * taps);
    return {taps, index, weight};
}

template <class T>
Contributions<T> by_input(KernelContext& ctx, const functors::Resampling& r, const Taps<T>& t) {
    const int64_t all = r.out * t.taps;
    auto* begin = scratch<int64_t>(ctx, r.in + 1);
    auto* index = scratch<int64_t>(ctx, all);
    auto* next = scratch<int64_t>(ctx, r.in);
    T* weight = scratch<T>(ctx, all);
    std::fill_n(begin, r.in + 1, 0);
    for (int64_t j = 0; j < all; ++j) begin[t.index[j] + 1] += t.weight[j] != T(0);
    int64_t each = begin[1];
    for (int64_t i = 0; i < r.in; ++i) {
        if (begin[i + 1] != each) each = 0;
        next[i] = begin[i];
        begin[i + 1] += begin[i];
    }
    for (int64_t j = 0; j < all; ++j) {
        if (t.weight[j] == T(0)) continue;
        const int64_t k = next[t.index[j]]++;
        index[k] = j / t.taps;
        weight[k] = t.weight[j];
    }
    return {each, begin, index, weight};
}

// The numbers of elements before and after dimension `dim` of a row-major view. If `channels_last` is true, the view has the
// tensor's second dimension at the end, and `dim` is the number of the dimension in the tensor.
struct Lengths {
    int64_t outer = 1, inner = 1;
    Lengths(const View& v, int64_t dim, bool channels_last) {
        if (dim < 0) dim += v.ndim;
        if (channels_last && dim > 0) dim = dim == 1 ? v.ndim - 1 : dim - 1;
        for (int d = 0; d < v.ndim; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : v.sizes[d];
    }
};

template <class F>
void with_type(DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{});
    if (dtype == DType::Float64) return f(double{});
    throw_not_implemented("interpolate: no kernel for dtype %s on the CPU", name(dtype));
}

}  // namespace

void resample(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t size, int64_t mode,
              bool align_corners, double scale, bool antialias) {
    if (out.numel == 0) return;
    const bool last = is_channels_last(out);
    const WidenedOut wide(ctx, last ? channels_inside(ctx, out) : out);
    const View x = contiguous_in(ctx, widened(ctx, last ? channels_inside(ctx, input) : input));
    const Lengths n(x, dim, last);
    const functors::Resampling r{
        input.size(static_cast<int>(dim)), size, mode, align_corners, scale, antialias};
    with_type(x.dtype, [&]<class T>(T) {
        loops<T>().forward(n.outer, r.in, r.out, n.inner, table<T>(ctx, r), wide.view().template as<T>(),
                           x.as<T>());
    });
    wide.finish();
}

void resample_backward(KernelContext& ctx, const View& grad_input, const View& grad_output, int64_t dim,
                       int64_t size, int64_t mode, bool align_corners, double scale, bool antialias) {
    if (grad_input.numel == 0) return;
    const bool last = is_channels_last(grad_input);
    const WidenedOut wide(ctx, last ? channels_inside(ctx, grad_input) : grad_input);
    const View dy = contiguous_in(ctx, widened(ctx, last ? channels_inside(ctx, grad_output) : grad_output));
    const Lengths n(dy, dim, last);
    const functors::Resampling r{
        size, grad_output.size(static_cast<int>(dim)), mode, align_corners, scale, antialias};
    with_type(dy.dtype, [&]<class T>(T) {
        loops<T>().backward(n.outer, r.in, r.out, n.inner, by_input<T>(ctx, r, table<T>(ctx, r)),
                            wide.view().template as<T>(), dy.as<T>());
    });
    wide.finish();
}

void grid_sample(KernelContext& ctx, const View& out, const View& input, const View& grid, int64_t mode,
                 int64_t padding, bool align_corners) {
    if (out.numel == 0) return;
    const WidenedOut wide(ctx, out);
    const View x = contiguous_in(ctx, widened(ctx, input)),
               positions = contiguous_in(ctx, widened(ctx, grid));
    GridShape s{input.size(0), input.size(1), 1, input.ndim - 2, {1, 1, 1}, mode, padding, align_corners};
    for (int d = 0; d < s.dims; ++d) s.sizes[d] = input.size(input.ndim - 1 - d);
    for (int d = 1; d < grid.ndim - 1; ++d) s.positions *= grid.size(d);
    if (x.dtype == DType::Float32)
        grid_sample_kernels().f32(s, wide.view().as<float>(), x.as<float>(), positions.as<float>());
    else grid_sample_kernels().f64(s, wide.view().as<double>(), x.as<double>(), positions.as<double>());
    wide.finish();
}

}  // namespace rushlight::cpu
