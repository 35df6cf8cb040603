// Random numbers: Note [Random values]. A thread draws a block and computes the values of this block.
#include "cuda/kernels.h"
#include "cuda/kernels/pointwise_loop.cuh"
#include "cuda/kernels/random_key.cuh"
#include "cuda/pointwise.h"
#include "cuda/queue.h"
#include "ops/functors/random.h"

namespace rushlight::cuda {
namespace {

/// Draws random values. f(block, values) computes kPer values from each Philox block.
template <int kPer, class T, class F>
__global__ void __launch_bounds__(kThreads) draw(const F f, const KeyPosition position, T* out, int64_t n) {
    const PhiloxKey key = position.key();
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t b = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; b * kPer < n; b += step) {
        const PhiloxBlock block = philox(key, static_cast<uint64_t>(b));
        T values[kPer];
        f(block, values);
        for (int k = 0; k < kPer; ++k)
            if (b * kPer + k < n) out[b * kPer + k] = values[k];
    }
}

// Uniform numbers in [0, 1) and standard normal numbers, which have the same bits on the CPU.
struct UniformFloat {
    __device__ void operator()(const PhiloxBlock& block, float* values) const {
        for (int k = 0; k < 4; ++k) values[k] = uniform_float(block.word[k]);
    }
};
struct UniformDouble {
    __device__ void operator()(const PhiloxBlock& block, double* values) const {
        for (int k = 0; k < 2; ++k) values[k] = uniform_double(block.wide(k));
    }
};
struct NormalFloat {
    __device__ void operator()(const PhiloxBlock& block, float* values) const {
        for (int k = 0; k < 4; k += 2) {
            const NormalPair<float> pair = normal_pair(block.word[k], block.word[k + 1]);
            values[k] = pair.first;
            values[k + 1] = pair.second;
        }
    }
};
struct NormalDouble {
    __device__ void operator()(const PhiloxBlock& block, double* values) const {
        const NormalPair<double> pair = normal_pair(block.wide(0), block.wide(1));
        values[0] = pair.first;
        values[1] = pair.second;
    }
};
struct Bernoulli {
    float p;
    __device__ void operator()(const PhiloxBlock& block, uint8_t* values) const {
        for (int k = 0; k < 4; ++k) values[k] = uniform_float(block.word[k]) < p;
    }
};
struct Integers {
    uint64_t low, range;
    __device__ void operator()(const PhiloxBlock& block, int64_t* values) const {
        for (int k = 0; k < 2; ++k)
            values[k] = static_cast<int64_t>(low + uniform_below(block.wide(k), range));
    }
};

/// Draws numbers from one distribution with `draw`, and converts them to another distribution with `map`.
template <class Draw, class Map>
struct Mapped {
    Draw draw;
    Map map;
    template <class T>
    __device__ void operator()(const PhiloxBlock& block, T* values) const {
        draw(block, values);
        constexpr int kPer = 16 / sizeof(T);
        for (int k = 0; k < kPer; ++k) values[k] = map(values[k]);
    }
};

/// Draws random values of type T. They are written directly to `out` if `out` is row-major and has elements of type T.
/// Otherwise they are written to scratch memory, which is then copied to `out`.
template <int kPer, class T, class F>
void queue_draw(const KernelArgs& args, const View& out, const F& f) {
    if (out.numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    const bool writes_output = out.contiguous && out.dtype == DTypeOf<T>::value;
    T* values = writes_output ? out.as<T>() : scratch<T>(args.context, out.numel);
    launch(&draw<kPer, T, F>, Grid{blocks_for((out.numel + kPer - 1) / kPer), kThreads}, stream, f,
           KeyPosition(args.context), values, out.numel);
    if (writes_output) return;
    const RowMajor dense(out.sizes, out.ndim);
    queue_copy(out, View{values, out.sizes, dense.strides, out.numel, out.ndim, DTypeOf<T>::value, 1},
               args.context);
}

/// A view of complex numbers as pairs of real numbers.
struct Pairs {
    int64_t sizes[65], strides[65];
    View view;

    explicit Pairs(const View& v) : view(v) {
        for (int d = 0; d < v.ndim; ++d) {
            sizes[d] = v.sizes[d];
            strides[d] = 2 * v.strides[d];
        }
        sizes[v.ndim] = 2;
        strides[v.ndim] = 1;
        view.sizes = sizes;
        view.strides = strides;
        ++view.ndim;
        view.numel *= 2;
        view.dtype = real_dtype(v.dtype);
    }
};

void queue_uniform(const KernelArgs& args, const View& out, double from, double to) {
    const double largest = functors::largest_below(to, from, out.dtype);
    if (out.dtype == DType::Float64)
        queue_draw<2, double>(
            args, out, Mapped<UniformDouble, functors::Uniform<double>>{{}, {from, to - from, largest}});
    else
        queue_draw<4, float>(
            args, out,
            Mapped<UniformFloat, functors::Uniform<float>>{
                {}, {static_cast<float>(from), static_cast<float>(to - from), static_cast<float>(largest)}});
}

/// Draws uniform or standard normal numbers, and applies `Map` to them. `Map` is constructed from the numbers a and b,
/// converted to the type of the drawn numbers.
template <template <class> class Map, class Float, class Double>
void queue_mapped(const KernelArgs& args, const View& out, double a, double b) {
    if (out.dtype == DType::Float64)
        queue_draw<2, double>(args, out, Mapped<Double, Map<double>>{{}, {a, b}});
    else
        queue_draw<4, float>(args, out,
                             Mapped<Float, Map<float>>{{}, {static_cast<float>(a), static_cast<float>(b)}});
}

/// Returns the tensor that an operator writes. Core passes it as the output, or as the first input.
const View& written(const KernelArgs& args) { return args.tensors[0]; }

/// The number of elements whose masks are computed from one Philox block. The mask of an element is computed from one
/// byte: Note [Random masks].
constexpr int kMaskPer = 16;

/// Whether dropout keeps element i, to which the Philox block `block` belongs.
__device__ bool is_kept(PhiloxKey key, const PhiloxBlock& block, int64_t i, uint64_t threshold) {
    const int k = static_cast<int>(i % kMaskPer);
    const uint32_t high = block.word[k / 4] >> 8 * (k % 4) & 0xFF;
    return high == threshold >> 24 ? keeps_at_tie(key, static_cast<uint64_t>(i), threshold)
                                   : high < threshold >> 24;
}

template <class T>
__global__ void __launch_bounds__(kThreads) drop(const KeyPosition position, uint64_t threshold, T scale,
                                                 const T* in, T* out, uint8_t* mask, int64_t n) {
    const PhiloxKey key = position.key();
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t b = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; b * kMaskPer < n; b += step) {
        const PhiloxBlock block = philox(key, static_cast<uint64_t>(b));
        for (int k = 0; k < kMaskPer; ++k) {
            const int64_t i = b * kMaskPer + k;
            if (i >= n) return;
            const bool kept = is_kept(key, block, i, threshold);
            out[i] = kept ? in[i] * scale : T(0);
            if (mask) mask[i] = kept;
        }
    }
}

__global__ void __launch_bounds__(kThreads)
    draw_mask(const KeyPosition position, uint64_t threshold, uint8_t* mask, int64_t n) {
    const PhiloxKey key = position.key();
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t b = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; b * kMaskPer < n; b += step) {
        const PhiloxBlock block = philox(key, static_cast<uint64_t>(b));
        for (int k = 0; k < kMaskPer && b * kMaskPer + k < n; ++k)
            mask[b * kMaskPer + k] = is_kept(key, block, b * kMaskPer + k, threshold);
    }
}

template <class T>
void queue_dropout(const KernelArgs& args) {
    const View &out = args.out(0), &in = args.in(0), &mask = args.out(1);
    const double p = args.params[0].as_float();
    const RowMajor dense(out.sizes, out.ndim);
    const cudaStream_t stream = queue_of(args);
    const auto as_t = [&](void* data) {
        return View{data, out.sizes, dense.strides, out.numel, out.ndim, DTypeOf<T>::value, 1};
    };
    const T* from = in.as<T>();
    if (!in.contiguous || in.dtype != DTypeOf<T>::value) {
        T* copied = scratch<T>(args.context, in.numel);
        queue_copy(as_t(copied), in, args.context);
        from = copied;
    }
    T* to = out.dtype == DTypeOf<T>::value ? out.as<T>() : scratch<T>(args.context, out.numel);
    launch(&drop<T>, Grid{blocks_for((out.numel + kMaskPer - 1) / kMaskPer), kThreads}, stream,
           KeyPosition(args.context), mask_threshold(1 - p), static_cast<T>(1 / (1 - p)), from, to,
           mask.defined() ? mask.as<uint8_t>() : nullptr, out.numel);
    if (to != out.data) queue_copy(out, as_t(to), args.context);
}

}  // namespace

BackendStatus uniform(const KernelArgs* args) {
    return guarded([args] {
        const double from = args->params[0].as_float(), to = args->params[1].as_float();
        const View& out = written(*args);
        queue_uniform(*args, is_complex(out.dtype) ? Pairs(out).view : out, from, to);
    });
}

// Each part of a complex number has half of the variance.
BackendStatus normal(const KernelArgs* args) {
    return guarded([args] {
        const double mean = args->params[0].as_float(), std = args->params[1].as_float();
        const View& out = written(*args);
        if (is_complex(out.dtype))
            return queue_mapped<functors::Normal, NormalFloat, NormalDouble>(*args, Pairs(out).view, mean,
                                                                             std / __builtin_sqrt(2.0));
        queue_mapped<functors::Normal, NormalFloat, NormalDouble>(*args, out, mean, std);
    });
}

BackendStatus exponential(const KernelArgs* args) {
    return guarded([args] {
        const double rate = args->params[0].as_float();
        const View& out = written(*args);
        if (out.dtype == DType::Float64)
            queue_draw<2, double>(*args, out,
                                  Mapped<UniformDouble, functors::Exponential<double>>{{}, {rate}});
        else
            queue_draw<4, float>(
                *args, out,
                Mapped<UniformFloat, functors::Exponential<float>>{{}, {static_cast<float>(rate)}});
    });
}

BackendStatus geometric(const KernelArgs* args) {
    return guarded([args] {
        const double scale = 1 / __builtin_log1p(-args->params[0].as_float());
        const View& out = written(*args);
        if (is_floating(out.dtype))
            return queue_mapped<functors::Geometric, UniformFloat, UniformDouble>(*args, out, scale,
                                                                                  __builtin_inf());
        // Integers are limited to the dtype's largest value.
        const int bits = 8 * static_cast<int>(itemsize(out.dtype));
        const double largest = __builtin_ldexp(1.0, bits - 1 - (bits == 64)) - 1;
        queue_draw<2, double>(*args, out,
                              Mapped<UniformDouble, functors::Geometric<double>>{{}, {scale, largest}});
    });
}

BackendStatus cauchy(const KernelArgs* args) {
    return guarded([args] {
        queue_mapped<functors::Cauchy, UniformFloat, UniformDouble>(
            *args, written(*args), args->params[0].as_float(), args->params[1].as_float());
    });
}

BackendStatus log_normal(const KernelArgs* args) {
    return guarded([args] {
        queue_mapped<functors::LogNormal, NormalFloat, NormalDouble>(
            *args, written(*args), args->params[0].as_float(), args->params[1].as_float());
    });
}

BackendStatus bernoulli(const KernelArgs* args) {
    return guarded([args] {
        queue_draw<4, uint8_t>(*args, written(*args),
                               Bernoulli{static_cast<float>(args->params[0].as_float())});
    });
}

BackendStatus integers(const KernelArgs* args) {
    return guarded([args] {
        queue_draw<2, int64_t>(*args, written(*args),
                               Integers{static_cast<uint64_t>(args->params[0].as_int()),
                                        static_cast<uint64_t>(args->params[1].as_int())});
    });
}

BackendStatus dropout_mask(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        if (out.numel == 0) return;
        const double p = args->params[1].as_float();
        launch(&draw_mask, Grid{blocks_for((out.numel + kMaskPer - 1) / kMaskPer), kThreads}, queue_of(*args),
               KeyPosition(args->context), mask_threshold(1 - p), out.as<uint8_t>(), out.numel);
    });
}

BackendStatus dropout(const KernelArgs* args) {
    return guarded([args] {
        if (args->out(0).numel == 0) return;
        if (args->out(0).dtype == DType::Float64) queue_dropout<double>(*args);
        else if (is_floating(args->out(0).dtype)) queue_dropout<float>(*args);
        else fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(args->out(0).dtype));
    });
}

}  // namespace rushlight::cuda
