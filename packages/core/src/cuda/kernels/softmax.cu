// Softmax, its logarithm and their gradients, along one dimension of row-major arrays.
#include "cuda/kernels.h"
#include "cuda/kernels/pointwise_loop.cuh"
#include "cuda/pointwise.h"
#include "cuda/queue.h"

namespace rushlight::cuda {
namespace {

/// Lines of `size` elements that lie `inner` apart. A block takes kThreads / lanes lines at a time.
struct Lines {
    int64_t count, size, inner;
    uint32_t lanes;
    __device__ int64_t first(int64_t line) const { return line / inner * size * inner + line % inner; }
};

struct Larger {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return a > b || a != a ? a : b;
    }
};
struct Plus {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return a + b;
    }
};

/// Of the threads of one line; all of a block call it.
template <class T, class F>
__device__ T over_lanes(T* room, uint32_t lane, uint32_t lanes, T value, F f) {
    __syncthreads();  // the room has been read
    room[threadIdx.x] = value;
    for (uint32_t apart = lanes / 2; apart > 0; apart /= 2) {
        __syncthreads();
        if (lane < apart) room[threadIdx.x] = f(room[threadIdx.x], room[threadIdx.x + apart]);
    }
    __syncthreads();
    return room[threadIdx.x - lane];
}

template <class T>
struct Values {
    T x[kThreads];
};

template <bool logarithm, class T, class Stored>
__global__ void __launch_bounds__(kThreads) softmax_lines(const Lines s, Stored* out, const Stored* in) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t line = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = line < s.count ? s.size : 0, at = n ? s.first(line) : 0;
        const auto value = [&](int64_t i) { return static_cast<T>(in[at + i * s.inner]); };
        T top = -static_cast<T>(INFINITY), total = 0;
        for (int64_t i = lane; i < n; i += s.lanes) top = Larger()(top, value(i));
        top = over_lanes(room.x, lane, s.lanes, top, Larger());
        for (int64_t i = lane; i < n; i += s.lanes) total += std::exp(value(i) - top);
        total = over_lanes(room.x, lane, s.lanes, total, Plus());
        const T scale = logarithm ? std::log(total) : T(1) / total;
        for (int64_t i = lane; i < n; i += s.lanes)
            out[at + i * s.inner] =
                Stored(logarithm ? value(i) - top - scale : std::exp(value(i) - top) * scale);
    }
}

template <bool logarithm, class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    softmax_gradients(const Lines s, Stored* out, const Stored* grad, const Stored* result) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t line = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = line < s.count ? s.size : 0, at = n ? s.first(line) : 0;
        T sum = 0;
        for (int64_t i = lane; i < n; i += s.lanes) {
            const T dy = static_cast<T>(grad[at + i * s.inner]);
            sum += logarithm ? dy : dy * static_cast<T>(result[at + i * s.inner]);
        }
        sum = over_lanes(room.x, lane, s.lanes, sum, Plus());
        for (int64_t i = lane; i < n; i += s.lanes) {
            const int64_t k = at + i * s.inner;
            const T dy = static_cast<T>(grad[k]), y = static_cast<T>(result[k]);
            out[k] = Stored(logarithm ? dy - std::exp(y) * sum : y * (dy - sum));
        }
    }
}

Lines lines_of(const View& v, int64_t dim) {
    Lines s{1, 1, 1, 1};
    if (dim < 0) dim += v.ndim;
    for (int d = 0; d < v.ndim; ++d) {
        if (d == dim) s.size = v.sizes[d];
        else s.count *= v.sizes[d];
        if (d > dim) s.inner *= v.sizes[d];
    }
    while (s.lanes < kThreads && s.lanes < s.size) s.lanes *= 2;
    return s;
}

/// A row-major input of the output's dtype.
template <class Stored>
const Stored* dense(const KernelArgs& args, int i) {
    const View& v = args.in(i);
    constexpr DType kDType = DTypeOf<Stored>::value;
    if (v.contiguous && v.dtype == kDType) return v.as<const Stored>();
    Stored* made = scratch<Stored>(args.context, v.numel);
    const RowMajor strides(v.sizes, v.ndim);
    queue_copy(View{made, v.sizes, strides.strides, v.numel, v.ndim, kDType, 1}, v, args.context);
    return made;
}

template <bool logarithm, bool backward>
struct Softmax {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& out = args.out(0);
        const Lines s = lines_of(out, args.params[0].as_int());
        const int64_t groups = (s.count * s.lanes + kThreads - 1) / kThreads;
        const Grid grid{blocks_for(groups * kThreads), kThreads};
        const cudaStream_t stream = queue_of(args);
        if constexpr (backward)
            launch(&softmax_gradients<logarithm, T, Stored>, grid, stream, s, out.as<Stored>(),
                   dense<Stored>(args, 0), dense<Stored>(args, 1));
        else
            launch(&softmax_lines<logarithm, T, Stored>, grid, stream, s, out.as<Stored>(),
                   dense<Stored>(args, 0));
    }
};

template <class F>
BackendStatus by_dtype(const KernelArgs* args) {
    return guarded([args] {
        if (args->out(0).numel == 0) return;
        switch (args->out(0).dtype) {
            case DType::Float16: return F::template run<Half>(*args);
            case DType::BFloat16: return F::template run<BFloat16>(*args);
            case DType::Float32: return F::template run<float>(*args);
            case DType::Float64: return F::template run<double>(*args);
            default:
                fail(BackendStatus::NotImplemented, "not defined for dtype %s",
                     dtype_name(args->out(0).dtype));
        }
    });
}

}  // namespace

BackendStatus softmax(const KernelArgs* args) { return by_dtype<Softmax<false, false>>(args); }
BackendStatus log_softmax(const KernelArgs* args) { return by_dtype<Softmax<true, false>>(args); }
BackendStatus softmax_backward(const KernelArgs* args) { return by_dtype<Softmax<false, true>>(args); }
BackendStatus log_softmax_backward(const KernelArgs* args) { return by_dtype<Softmax<true, true>>(args); }

}  // namespace rushlight::cuda
