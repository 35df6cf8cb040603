// Distances between rows and their gradients, as defined in cpu/kernels/metric.cpp, and hashes of rows.
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"

namespace rushlight::cuda {
namespace {

/// The kinds of norms. All except `Other` have special formulas.
enum class Norm : uint8_t { Zero, One, Two, Infinite, Other };

Norm norm_of(double p) {
    return p == 0          ? Norm::Zero
           : p == 1        ? Norm::One
           : p == 2        ? Norm::Two
           : p == INFINITY ? Norm::Infinite
                           : Norm::Other;
}

template <class T>
struct Distance {
    T* out;
    const T *a, *b;
    int64_t rows, others, n;  // sizes of each batch
    Norm norm;
    T p;

    /// Returns the term of the sum for a difference `d`. If a difference is NaN, the number of nonzero differences is
    /// NaN.
    __device__ T term(T d) const {
        switch (norm) {
            case Norm::Zero: return d != d ? d : T(d != 0);
            case Norm::Two: return d * d;
            case Norm::Other: return std::pow(std::abs(d), p);
            default: return std::abs(d);
        }
    }
    __device__ T finished(T sum) const {
        return norm == Norm::Two ? std::sqrt(sum) : norm == Norm::Other ? std::pow(sum, 1 / p) : sum;
    }
};

/// Computes the distances. Several threads together compute each distance.
template <class T>
__global__ void __launch_bounds__(kThreads) find_distances(const Rows s, const Distance<T> f) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t k = group * at_once + threadIdx.x / s.lanes;
        T sum = 0;
        if (k < s.count) {
            const int64_t row = k / f.others, other = row / f.rows * f.others + k % f.others;
            const T *x = f.a + row * f.n, *y = f.b + other * f.n;
            for (int64_t i = lane; i < f.n; i += s.lanes) {
                const T term = f.term(x[i] - y[i]);
                sum = f.norm == Norm::Infinite ? Larger()(term, sum) : sum + term;
            }
        }
        sum = f.norm == Norm::Infinite ? over_lanes(room.x, lane, s.lanes, sum, Larger())
                                       : over_lanes(room.x, lane, s.lanes, sum, Plus());
        if (k < s.count && lane == 0) f.out[k] = f.finished(sum);
    }
}

/// Computes an element of the gradient with respect to the rows of `a`.
template <class T>
struct DistanceGradient {
    T* out;
    const T *grad, *a, *b, *far;
    int64_t rows, others, n;
    Norm norm;
    T p;

    __device__ static T sign(T d) { return d == 0 ? T(0) : d < 0 ? T(-1) : T(1); }
    __device__ T slope(T d, T distance) const {
        switch (norm) {
            case Norm::Zero: return 0;
            case Norm::One: return sign(d);
            case Norm::Two: return d / distance;
            case Norm::Infinite: return std::abs(d) == distance ? sign(d) : T(0);
            default: return d == 0 ? T(0) : sign(d) * std::pow(std::abs(d) / distance, p - 1);
        }
    }
    __device__ void operator()(int64_t i) const {
        const int64_t row = i / n, column = i % n, first = row / rows * others;
        T sum = 0;
        for (int64_t j = 0; j < others; ++j) {
            const T distance = far[row * others + j];
            if (distance == 0) continue;
            sum += grad[row * others + j] * slope(a[i] - b[(first + j) * n + column], distance);
        }
        out[i] = sum;
    }
};

/// Computes the exclusive or (XOR) of the 64-bit numbers of each row.
__global__ void __launch_bounds__(kThreads) hash_rows(const Rows s, uint64_t* out, const uint64_t* in) {
    __shared__ Values<uint64_t> room;
    const auto exclusive_or = [](uint64_t x, uint64_t y) { return x ^ y; };
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / s.lanes;
        uint64_t hash = 0;
        if (row < s.count)
            for (int64_t i = lane; i < s.size; i += s.lanes) hash ^= in[row * s.size + i];
        hash = over_lanes(room.x, lane, s.lanes, hash, exclusive_or);
        if (row < s.count && lane == 0) out[row] = hash;
    }
}

}  // namespace

BackendStatus cdist_rows(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &a = args->in(0), &b = args->in(1);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(*args);
        const double p = args->params[0].as_float();
        by_element_type(Floats{}, out.dtype, [&]<class T>(T) {
            const Rows rows(out.numel, a.sizes[2], 1);
            const DenseOut<T> to(args->context, out);
            launch(&find_distances<T>, rows.grid(), stream, rows,
                   Distance<T>{to.data(), dense<T>(args->context, a), dense<T>(args->context, b), a.sizes[1],
                               b.sizes[1], a.sizes[2], norm_of(p), static_cast<T>(p)});
            to.finish();
        });
    });
}

BackendStatus cdist_gradient(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &a = args->in(1), &b = args->in(2);
        if (out.numel == 0) return;
        queue_of(*args);
        const double p = args->params[0].as_float();
        by_element_type(Floats{}, out.dtype, [&]<class T>(T) {
            const DenseOut<T> to(args->context, out);
            queue_for_each(*args, out.numel,
                           DistanceGradient<T>{to.data(), dense<T>(args->context, args->in(0)),
                                               dense<T>(args->context, a), dense<T>(args->context, b),
                                               dense<T>(args->context, args->in(3)), a.sizes[1], b.sizes[1],
                                               a.sizes[2], norm_of(p), static_cast<T>(p)});
            to.finish();
        });
    });
}

/// Converts the elements to 64 bits, and computes their exclusive or (XOR) along dimensions.
BackendStatus hash_tensor(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(*args);
        const Ints dims = args->params[0].as_ints();
        bool reduced[64];
        for (int d = 0; d < in.ndim; ++d) reduced[d] = dims.size == 0;
        for (int64_t dim : dims)
            if (in.ndim > 0) reduced[dim < 0 ? dim + in.ndim : dim] = true;
        // The reduced dimensions become the last ones.
        int64_t sizes[64], strides[64];
        int at = 0;
        for (const bool last : {false, true})
            for (int d = 0; d < in.ndim; ++d)
                if (reduced[d] == last) {
                    sizes[at] = in.sizes[d];
                    strides[at++] = in.strides[d];
                }
        const DType wide = is_floating(in.dtype)       ? DType::Float64
                           : in.dtype == DType::UInt64 ? DType::UInt64
                                                       : DType::Int64;
        auto* bits = scratch<uint64_t>(args->context, in.numel);
        const RowMajor steps(sizes, in.ndim);
        queue_copy(View{bits, sizes, steps.strides, in.numel, in.ndim, wide, 1},
                   View{in.data, sizes, strides, in.numel, in.ndim, in.dtype, 0}, args->context);
        const Rows rows(out.numel, in.numel / out.numel, 1);
        const DenseOut<uint64_t> to(args->context, out);
        launch(&hash_rows, rows.grid(), stream, rows, to.data(), bits);
        to.finish();
    });
}

}  // namespace rushlight::cuda
