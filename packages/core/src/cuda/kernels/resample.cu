// Interpolation along a dimension and its gradient, and sampling at arbitrary positions of a grid.
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"
#include "cuda/sorting.h"
#include "ops/functors/grid_sample.h"
#include "ops/functors/resample.h"
#include "ops/functors/searching.h"

namespace rushlight::cuda {
namespace {

using namespace functors;

// --- Along a dimension ------------------------------------------------------------------------------

/// For each output position, the `taps` input positions from which it is computed, and their weights.
template <class C>
struct Taps {
    int64_t taps, *index;
    C* weight;
};
template <class C>
struct FindTaps {
    Resampling r;
    Taps<C> t;
    __device__ void operator()(int64_t j) const { r.taps_of(j, t.index + j * t.taps, t.weight + j * t.taps); }
};
template <class C>
Taps<C> queue_taps(const KernelArgs& args, const Resampling& r) {
    const int64_t taps = r.taps<C>();
    const Taps<C> t{taps, scratch<int64_t>(args.context, r.out * taps),
                    scratch<C>(args.context, r.out * taps)};
    queue_for_each(args, r.out, FindTaps<C>{r, t});
    return t;
}

/// Computes the elements of the output. `in` and `out` have the row-major shape (outer, positions, inner).
template <class T>
struct Interpolate {
    using C = Computed<T>;
    T* out;
    const T* in;
    Taps<C> t;
    int64_t in_size, out_size, inner;
    __device__ void operator()(int64_t i) const {
        const int64_t j = i / inner % out_size;
        const T* from = in + i / inner / out_size * in_size * inner + i % inner;
        C total = C(0);
        for (int64_t k = j * t.taps; k < (j + 1) * t.taps; ++k) {
            const C x = static_cast<C>(from[t.index[k] * inner]);
            total = k == j * t.taps ? t.weight[k] * x : total + t.weight[k] * x;
        }
        out[i] = t.taps == 1 ? from[t.index[j] * inner] : static_cast<T>(total);
    }
};

struct TapKeys {
    uint64_t* keys;
    const int64_t* index;
    __device__ void operator()(int64_t i) const { keys[i] = static_cast<uint64_t>(index[i]); }
};
/// Computes for each input position the weighted sum of the gradients of all output positions that read this input
/// position, in the order of the output positions.
template <class T>
struct InterpolateBackward {
    using C = Computed<T>;
    T* out;
    const T* grad;
    Taps<C> t;
    Sorted sorted;
    int64_t in_size, out_size, inner;
    __device__ void operator()(int64_t i) const {
        const auto position = static_cast<uint64_t>(i / inner % in_size);
        const T* from = grad + i / inner / in_size * out_size * inner + i % inner;
        const int64_t n = out_size * t.taps;
        C total = C(0);
        for (int64_t k = first_position(n, [&](int64_t p) { return sorted.keys[p] < position; });
             k < n && sorted.keys[k] == position; ++k) {
            const int64_t tap = sorted.numbers[k];
            if (t.weight[tap] != C(0)) total += static_cast<C>(from[tap / t.taps * inner]) * t.weight[tap];
        }
        out[i] = static_cast<T>(total);
    }
};

struct Resampled {
    Resampling r;
    int64_t inner = 1;
    /// The operator's parameters are dim, size, mode, align_corners, scale and antialias. Apart from `dim`, `v` has the
    /// sizes of the input and the output.
    Resampled(const KernelArgs& args, const View& v, int64_t in, int64_t out)
        : r{in,
            out,
            args.params[2].as_int(),
            args.params[3].as_bool(),
            args.params[4].kind == Param::Kind::None ? 0 : args.params[4].as_float(),
            args.params[5].as_bool()} {
        int64_t dim = args.params[0].as_int();
        if (dim < 0) dim += v.ndim;
        for (int64_t d = dim + 1; d < v.ndim; ++d) inner *= v.sizes[d];
    }
};

struct Resample {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &in = args.in(0);
        if (out.numel == 0) return;
        queue_of(args);
        const auto dim = static_cast<int>(args.params[0].as_int());
        const Resampled s(args, in, in.size(dim), out.size(dim));
        const auto taps = queue_taps<Computed<T>>(args, s.r);
        const DenseOut<T> to(args.context, out);
        queue_for_each(args, out.numel,
                       Interpolate<T>{to.data(), dense<T>(args.context, in), taps, s.r.in, s.r.out, s.inner});
        to.finish();
    }
};
struct ResampleBackward {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &grad = args.in(0);
        if (out.numel == 0) return;
        queue_of(args);
        const auto dim = static_cast<int>(args.params[0].as_int());
        const Resampled s(args, grad, out.size(dim), grad.size(dim));
        const auto taps = queue_taps<Computed<T>>(args, s.r);
        const int64_t n = s.r.out * taps.taps;
        auto* keys = scratch<uint64_t>(args.context, n);
        queue_for_each(args, n, TapKeys{keys, taps.index});
        const Sorted sorted = queue_sort(args.context, keys, nullptr, n, bits_below(s.r.in));
        const DenseOut<T> to(args.context, out);
        queue_for_each(args, out.numel,
                       InterpolateBackward<T>{to.data(), dense<T>(args.context, grad), taps, sorted, s.r.in,
                                              s.r.out, s.inner});
        to.finish();
    }
};

// --- Sampling at the positions of a grid ---------------------------------------------------------------

struct GridShape {
    int64_t batch, channels, positions = 1, length = 1;
    int dims;
    int64_t sizes[3];  // from the last dimension to the first, like the coordinates of the grid
    int64_t padding;
    bool align_corners;

    GridShape(const KernelArgs& args, const View& in, const View& grid)
        : batch(in.size(0)),
          channels(in.size(1)),
          dims(in.ndim - 2),
          padding(args.params[1].as_int()),
          align_corners(args.params[2].as_bool()) {
        for (int d = 0; d < dims; ++d) length *= sizes[d] = in.size(in.ndim - 1 - d);
        for (int d = 1; d < grid.ndim - 1; ++d) positions *= grid.size(d);
    }
};

/// Computes all channels of one position of a sample.
template <GridMode mode, class T>
struct SamplePosition {
    using C = Computed<T>;
    static constexpr int kTaps = grid_taps(mode), kMost = kTaps == 4 ? 16 : kTaps * kTaps * kTaps;
    GridShape s;
    T* out;
    const T *in, *grid;

    __device__ void operator()(int64_t i) const {
        const int64_t sample = i / s.positions, position = i % s.positions;
        int64_t index[kMost] = {0}, step = 1;
        C weight[kMost] = {C(1)};
        int count = 1;
        for (int d = 0; d < s.dims; ++d) {
            int64_t at[kTaps];
            C by[kTaps];
            each_grid_tap<mode>(static_cast<C>(grid[i * s.dims + d]), static_cast<C>(s.sizes[d]), s.padding,
                                s.align_corners, [&](int k, int64_t element, C w) {
                                    at[k] = element;
                                    by[k] = w;
                                });
            // Runs from the last entry to the first, so that entries are not overwritten before they are read.
            for (int c = count - 1; c >= 0; --c)
                for (int k = kTaps - 1; k >= 0; --k) {
                    index[c * kTaps + k] = index[c] + at[k] * step;
                    weight[c * kTaps + k] = weight[c] * by[k];
                }
            count *= kTaps;
            step *= s.sizes[d];
        }
        for (int64_t c = 0; c < s.channels; ++c) {
            const T* plane = in + (sample * s.channels + c) * s.length;
            C sum = weight[0] * static_cast<C>(plane[index[0]]);
            for (int k = 1; k < count; ++k) sum += weight[k] * static_cast<C>(plane[index[k]]);
            out[(sample * s.channels + c) * s.positions + position] = static_cast<T>(sum);
        }
    }
};

struct GridSample {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &in = args.in(0), &grid = args.in(1);
        if (out.numel == 0) return;
        queue_of(args);
        const GridShape s(args, in, grid);
        const DenseOut<T> to(args.context, out);
        const T *from = dense<T>(args.context, in), *positions = dense<T>(args.context, grid);
        const int64_t n = s.batch * s.positions;
        switch (args.params[0].as_int()) {
            case kGridNearest:
                queue_for_each(args, n, SamplePosition<kGridNearest, T>{s, to.data(), from, positions});
                break;
            case kGridLinear:
                queue_for_each(args, n, SamplePosition<kGridLinear, T>{s, to.data(), from, positions});
                break;
            default: queue_for_each(args, n, SamplePosition<kGridCubic, T>{s, to.data(), from, positions});
        }
        to.finish();
    }
};

}  // namespace

BackendStatus resample(const KernelArgs* args) {
    return by_floating_dtype<Resample>(args, args->out(0).dtype);
}
BackendStatus resample_backward(const KernelArgs* args) {
    return by_floating_dtype<ResampleBackward>(args, args->out(0).dtype);
}
BackendStatus grid_sample(const KernelArgs* args) {
    return by_floating_dtype<GridSample>(args, args->out(0).dtype);
}

}  // namespace rushlight::cuda
