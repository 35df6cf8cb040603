#include "cpu/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/contiguous.h"
#include "cpu/grid_sample_kernels.h"
#include "cpu/resample_kernels.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

template <class T> const ResampleLoops<T>& loops();
template <> const ResampleLoops<float>& loops() { return resample_kernels().f32; }
template <> const ResampleLoops<double>& loops() { return resample_kernels().f64; }

// Keys' kernel of parameter a: the weights of the places 1 + f and 2 - f, and f and 1 - f, away.
template <class T>
T keys_near(T x, T a) {
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class T>
T keys_far(T x, T a) {
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

struct Request {
    int64_t in, out;
    int64_t mode;
    bool align_corners;
    double scale;  // 0: the quotient of the sizes
    bool antialias;

    bool cubic() const { return mode == kCubic; }
    bool linear() const { return mode == kLinear; }
    // Input places from one output place to the next.
    template <class T>
    T step() const {
        if (align_corners && (linear() || cubic()))
            return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
        return scale > 0 ? static_cast<T>(std::min(1.0 / scale, 1e9))
                         : static_cast<T>(in) / static_cast<T>(out);
    }
    // Where output place j lies among the input places.
    template <class T>
    T source(int64_t j, T step) const {
        const T place = static_cast<T>(j);
        return align_corners ? step * place : step * (place + T(0.5)) - T(0.5);
    }
};

// A table of taps in scratch memory.
template <class T>
struct Table {
    int64_t taps, *index;
    T* weight;

    Table(KernelContext& ctx, const Request& r, int64_t taps)
        : taps(taps), index(scratch<int64_t>(ctx, r.out * taps)), weight(scratch<T>(ctx, r.out * taps)) {}
    operator Taps<T>() const { return {taps, index, weight}; }
};

template <class T>
Table<T> nearest(KernelContext& ctx, const Request& r) {
    Table<T> t(ctx, r, 1);
    // In float32 whatever the dtype, as PyTorch does: which place is nearest depends on it.
    const float step = r.step<float>(), half = r.mode == kNearestExact ? 0.5f : 0.0f;
    for (int64_t j = 0; j < r.out; ++j) {
        const auto i = static_cast<int64_t>(std::floor((static_cast<float>(j) + half) * step));
        t.index[j] = std::clamp<int64_t>(i, 0, r.in - 1);
        t.weight[j] = 1;
    }
    return t;
}

template <class T>
Table<T> linear(KernelContext& ctx, const Request& r) {
    Table<T> t(ctx, r, 2);
    const T step = r.step<T>();
    for (int64_t j = 0; j < r.out; ++j) {
        const T x = std::max(r.source(j, step), T(0));
        const int64_t low = std::min(static_cast<int64_t>(x), r.in - 1);
        const T rest = std::min(x - static_cast<T>(low), T(1));
        t.index[2 * j] = low;
        t.index[2 * j + 1] = std::min(low + 1, r.in - 1);
        t.weight[2 * j] = 1 - rest;
        t.weight[2 * j + 1] = rest;
    }
    return t;
}

template <class T>
Table<T> cubic(KernelContext& ctx, const Request& r) {
    Table<T> t(ctx, r, 4);
    const T step = r.step<T>(), a = T(-0.75);
    for (int64_t j = 0; j < r.out; ++j) {
        const T x = r.source(j, step);
        const auto low = static_cast<int64_t>(std::floor(x));
        const T f = std::clamp(x - static_cast<T>(low), T(0), T(1));
        const T weights[] = {keys_far(f + 1, a), keys_near(f, a), keys_near(1 - f, a), keys_far(2 - f, a)};
        for (int k = 0; k < 4; ++k) {
            t.index[4 * j + k] = std::clamp<int64_t>(low - 1 + k, 0, r.in - 1);
            t.weight[4 * j + k] = weights[k];
        }
    }
    return t;
}

template <class T>
T antialias_filter(T x, bool cubic) {
    x = std::abs(x);
    if (!cubic) return x < 1 ? 1 - x : T(0);
    return x < 1 ? keys_near(x, T(-0.5)) : x < 2 ? keys_far(x, T(-0.5)) : T(0);
}

// The filter is stretched to the distance of the output places; the weights within the input add up to one.
template <class T>
Table<T> antialiased(KernelContext& ctx, const Request& r) {
    const T step = r.step<T>(), width = std::max(step, T(1)), reach = width * (r.cubic() ? 2 : 1);
    Table<T> t(ctx, r, std::min(static_cast<int64_t>(std::ceil(reach)), r.in) * 2 + 1);
    for (int64_t j = 0; j < r.out; ++j) {
        const T center = step * (static_cast<T>(j) + T(0.5));
        const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - reach + T(0.5)), 0);
        const int64_t count = std::clamp<int64_t>(
            std::min(static_cast<int64_t>(center + reach + T(0.5)), r.in) - first, 0, t.taps);
        T total = 0;
        for (int64_t k = 0; k < t.taps; ++k) {
            const T away = (static_cast<T>(first + k) - center + T(0.5)) / width;
            const T w = k < count ? antialias_filter(away, r.cubic()) : T(0);
            t.index[j * t.taps + k] = std::min(first + k, r.in - 1);
            t.weight[j * t.taps + k] = w;
            total += w;
        }
        for (int64_t k = 0; total != 0 && k < t.taps; ++k) t.weight[j * t.taps + k] /= total;
    }
    return t;
}

template <class T>
Table<T> table(KernelContext& ctx, const Request& r) {
    if (r.antialias) return antialiased<T>(ctx, r);
    return r.linear() ? linear<T>(ctx, r) : r.cubic() ? cubic<T>(ctx, r) : nearest<T>(ctx, r);
}

struct Lengths {
    int64_t outer = 1, inner = 1;
    Lengths(const View& v, int64_t dim) {
        if (dim < 0) dim += v.ndim;
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
    const WidenedOut wide(ctx, out);
    const View x = contiguous_in(ctx, widened(ctx, input));
    const Lengths n(x, dim);
    const Request r{x.size(static_cast<int>(dim)), size, mode, align_corners, scale, antialias};
    with_type(x.dtype, [&]<class T>(T) {
        loops<T>().forward(n.outer, r.in, r.out, n.inner, table<T>(ctx, r), wide.view().template as<T>(),
                           x.as<T>());
    });
    wide.finish();
}

void resample_backward(KernelContext& ctx, const View& grad_input, const View& grad_output, int64_t dim,
                       int64_t size, int64_t mode, bool align_corners, double scale, bool antialias) {
    if (grad_input.numel == 0) return;
    const WidenedOut wide(ctx, grad_input);
    const View dy = contiguous_in(ctx, widened(ctx, grad_output));
    const Lengths n(dy, dim);
    const Request r{size, dy.size(static_cast<int>(dim)), mode, align_corners, scale, antialias};
    with_type(dy.dtype, [&]<class T>(T) {
        T* dx = wide.view().template as<T>();
        std::memset(dx, 0, sizeof(T) * static_cast<size_t>(grad_input.numel));
        loops<T>().backward(n.outer, r.in, r.out, n.inner, table<T>(ctx, r), dx, dy.as<T>());
    });
    wide.finish();
}

void grid_sample(KernelContext& ctx, const View& out, const View& input, const View& grid, int64_t mode,
                 int64_t padding, bool align_corners) {
    if (out.numel == 0) return;
    const WidenedOut wide(ctx, out);
    const View x = contiguous_in(ctx, widened(ctx, input)), places = contiguous_in(ctx, widened(ctx, grid));
    GridShape s{input.size(0), input.size(1), 1, input.ndim - 2, {1, 1, 1}, mode, padding, align_corners};
    for (int d = 0; d < s.dims; ++d) s.sizes[d] = input.size(input.ndim - 1 - d);
    for (int d = 1; d < grid.ndim - 1; ++d) s.places *= grid.size(d);
    if (x.dtype == DType::Float32)
        grid_sample_kernels().f32(s, wide.view().as<float>(), x.as<float>(), places.as<float>());
    else grid_sample_kernels().f64(s, wide.view().as<double>(), x.as<double>(), places.as<double>());
    wide.finish();
}

}  // namespace rushlight::cpu
