// Pooling over two or three dimensions: the maximum or mean of each window, and the gradients. Sums have the same order as
// on the CPU. A gradient is gathered from the windows that contain an element, so that it is the same in every run. Arrays
// are row-major or, except for gradients of maxima, channels-last.
#include <limits>

#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/formats.cuh"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

__device__ int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
__device__ int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

/// The part of a window along one dimension that lies in the input: `count` positions from `first`, in steps of `step`.
struct Span {
    int64_t first, count, step;
    int64_t extent;  // the factor that this dimension contributes to the divisor of a mean
};
/// The windows from `first` to `end` - 1.
struct WindowRange {
    int64_t first, end;
};

/// Each array of sizes has three elements. A pool with fewer than three dimensions uses the last elements, and its
/// other elements are 1.
struct PoolSizes {
    int64_t planes, in[3], out[3];
    int64_t together = 1;  // number of planes whose elements alternate: the channels of a channels-last array

    PoolSizes(int dims, const View& input, const View& output) : planes(1) {
        for (int d = 0; d < 3; ++d) {
            in[d] = 3 - d <= dims ? input.size(d - 3) : 1;
            out[d] = 3 - d <= dims ? output.size(d - 3) : 1;
        }
        for (int d = 0; d < input.ndim - dims; ++d) planes *= input.sizes[d];
    }
    __host__ __device__ int64_t in_size() const { return in[0] * in[1] * in[2]; }
    __host__ __device__ int64_t out_size() const { return out[0] * out[1] * out[2]; }
    /// The index within its plane of element `i` of an array with planes of `size` elements.
    __device__ int64_t within_plane(int64_t i, int64_t size) const { return i / together % size; }
    /// The first element of the same plane in an array with planes of `other` elements.
    __device__ int64_t same_plane(int64_t i, int64_t size, int64_t other) const {
        return i / (together * size) * (together * other) + i % together;
    }
};

/// The format in which a pool of `dims` dimensions reads and writes its arrays, if one of them is given.
bool pools_channels_last(int dims, const View& given) {
    return given.ndim == dims + 2 && is_channels_last(given);
}

/// Windows of equal size. Successive windows begin `stride` positions apart.
struct SlidingWindows : PoolSizes {
    int64_t kernel[3], stride[3], padding[3], dilation[3];
    bool include_padding = true;
    int64_t divisor = 0;  // 0: the window's size

    /// Parameters 0 to 3 are the lists kernel, stride, padding and, if `dilated` is true, dilation.
    SlidingWindows(int dims, const View& input, const View& output, const KernelArgs& args, bool dilated)
        : PoolSizes(dims, input, output) {
        const auto entry = [&](int list, int i, int64_t otherwise) {
            const Ints given = args.params[list].as_ints();
            return given.size == 0 ? otherwise : given[given.size == 1 ? 0 : i];
        };
        for (int d = 0; d < 3; ++d) {
            const int i = d - 3 + dims;
            kernel[d] = i < 0 ? 1 : entry(0, i, 1);
            stride[d] = i < 0 ? 1 : entry(1, i, kernel[d]);
            padding[d] = i < 0 ? 0 : entry(2, i, 0);
            dilation[d] = i < 0 || !dilated ? 1 : entry(3, i, 1);
        }
    }
    __device__ Span span(int d, int64_t window) const {
        const int64_t start = window * stride[d] - padding[d], step = dilation[d];
        const int64_t skipped = start >= 0 ? 0 : (-start + step - 1) / step;
        const int64_t last = start >= in[d] ? 0 : smaller(kernel[d], (in[d] - 1 - start) / step + 1);
        const int64_t end = smaller(start + kernel[d], in[d] + padding[d]);
        return {start + skipped * step, larger(last - skipped, 0), step,
                include_padding ? end - start : smaller(end, in[d]) - larger(start, 0)};
    }
    /// Returns the windows that contain a position. Requires a dilation of 1.
    __device__ WindowRange around(int d, int64_t position) const {
        const int64_t at = position + padding[d];
        return {at < kernel[d] ? 0 : (at - kernel[d]) / stride[d] + 1, smaller(at / stride[d] + 1, out[d])};
    }
};

/// Windows that divide the input as evenly as possible.
struct AdaptiveWindows : PoolSizes {
    static constexpr int64_t divisor = 0;
    using PoolSizes::PoolSizes;

    __device__ Span span(int d, int64_t window) const {
        const int64_t first = window * in[d] / out[d], end = ((window + 1) * in[d] + out[d] - 1) / out[d];
        return {first, end - first, 1, end - first};
    }
    __device__ WindowRange around(int d, int64_t position) const {
        return {position * out[d] / in[d], ((position + 1) * out[d] + in[d] - 1) / in[d]};
    }
};

/// The window of an output element.
struct Box {
    Span z, y, x;

    template <class Windows>
    __device__ Box(const Windows& w, int64_t at)
        : z(w.span(0, at / (w.out[1] * w.out[2]))),
          y(w.span(1, at / w.out[2] % w.out[1])),
          x(w.span(2, at % w.out[2])) {}
    __device__ int64_t position(const PoolSizes& sizes, int64_t i, int64_t j, int64_t k) const {
        return ((z.first + i * z.step) * sizes.in[1] + y.first + j * y.step) * sizes.in[2] + x.first +
               k * x.step;
    }
};

// --- Maxima -----------------------------------------------------------------------------------------

template <class Windows, class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    find_maxima(const Windows w, Stored* out, int64_t* indices, const Stored* in, T least) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, size = w.out_size();
    for (int64_t o = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; o < w.planes * size;
         o += step) {
        const Stored* from = in + w.same_plane(o, size, w.in_size());
        const Box box(w, w.within_plane(o, size));
        T best = least;
        int64_t found = -1;  // stays -1 if, with dilation, a window has no element inside the input
        for (int64_t i = 0; i < box.z.count; ++i) {
            for (int64_t j = 0; j < box.y.count; ++j) {
                for (int64_t k = 0; k < box.x.count; ++k) {
                    const int64_t position = box.position(w, i, j, k);
                    const T v = static_cast<T>(from[position * w.together]);
                    // Selects the first of equal elements, and the last NaN.
                    if (found < 0 || v > best || v != v) {
                        best = v;
                        found = position;
                    }
                }
            }
        }
        out[o] = Stored(best);
        if (indices) indices[o] = found;
    }
}

template <class Stored, class Windows>
void queue_maxima(const KernelArgs& args, int dims, Windows w) {
    constexpr bool kInteger = std::numeric_limits<Stored>::is_integer;
    using T = Computed<Stored>;
    if (args.out(0).numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    const bool last = pools_channels_last(dims, args.in(0));
    if (last) w.together = args.in(0).size(1);
    const FormatOut<Stored> to(args.context, args.out(0), last);
    const FormatOut<int64_t> indices(args.context, args.out(1), last);
    const T least = kInteger ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity();
    launch(&find_maxima<Windows, T, Stored>, Grid{blocks_for(args.out(0).numel), kThreads}, stream, w,
           to.data(), indices.data(), in_format<Stored>(args.context, args.in(0), last), least);
    to.finish();
    indices.finish();
}

template <int dims>
BackendStatus max_pool(const KernelArgs* args) {
    return guarded([args] {
        const SlidingWindows w(dims, args->in(0), args->out(0), *args, true);
        switch (args->in(0).dtype) {
            case DType::UInt8: return queue_maxima<uint8_t>(*args, dims, w);
            case DType::Int8: return queue_maxima<int8_t>(*args, dims, w);
            case DType::Int16: return queue_maxima<int16_t>(*args, dims, w);
            case DType::Int32: return queue_maxima<int32_t>(*args, dims, w);
            case DType::Int64: return queue_maxima<int64_t>(*args, dims, w);
            case DType::UInt16: return queue_maxima<uint16_t>(*args, dims, w);
            case DType::UInt32: return queue_maxima<uint32_t>(*args, dims, w);
            case DType::UInt64: return queue_maxima<uint64_t>(*args, dims, w);
            case DType::Float16: return queue_maxima<Half>(*args, dims, w);
            case DType::BFloat16: return queue_maxima<BFloat16>(*args, dims, w);
            case DType::Float32: return queue_maxima<float>(*args, dims, w);
            case DType::Float64: return queue_maxima<double>(*args, dims, w);
            default:
                fail(BackendStatus::NotImplemented, "not defined for dtype %s",
                     dtype_name(args->in(0).dtype));
        }
    });
}

template <int dims>
struct AdaptiveMax {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue_maxima<Stored>(args, dims, AdaptiveWindows(dims, args.in(0), args.out(0)));
    }
};

/// Each block processes one plane after another, and the outputs of a plane in order, kThreads at a time. If several
/// outputs have the same position, the thread of the first of these outputs adds the gradients of all of them. The
/// positions may be in any order.
template <class T>
__global__ void __launch_bounds__(kThreads)
    spread_maxima(T* out, const T* grad, const int64_t* indices, const Alarm alarm, int64_t planes,
                  int64_t in_size, int64_t out_size) {
    __shared__ Values<T> values;
    __shared__ Values<int64_t> positions;
    for (int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
        T* to = out + plane * in_size;
        for (int64_t i = threadIdx.x; i < in_size; i += kThreads) to[i] = 0;
        for (int64_t first = 0; first < out_size; first += kThreads) {
            const int64_t o = first + threadIdx.x;
            __syncthreads();  // all threads have read the previous positions
            int64_t position = -1;
            if (o < out_size) {
                const int64_t given = indices[plane * out_size + o];
                // A window without elements has the index -1.
                position = given == -1 || alarm.checked(given, in_size) == given ? given : -1;
                values.x[threadIdx.x] = grad[plane * out_size + o];
            }
            positions.x[threadIdx.x] = position;
            __syncthreads();
            if (position < 0) continue;
            uint32_t t = 0;
            while (positions.x[t] != position) ++t;
            if (t != threadIdx.x) continue;
            T sum = to[position];
            for (; t < kThreads; ++t)
                if (positions.x[t] == position) sum += values.x[t];
            to[position] = sum;
        }
    }
}

template <int dims>
struct MaxBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& out = args.out(0);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        const PoolSizes sizes(dims, out, args.in(0));
        const DenseOut<T> to(args.context, out);
        launch(&spread_maxima<T>, Grid{blocks_for(sizes.planes * kThreads), kThreads}, stream, to.data(),
               dense<T>(args.context, args.in(0)), dense<int64_t>(args.context, args.in(1)),
               alarm_of(args.context), sizes.planes, sizes.in_size(), sizes.out_size());
        to.finish();
    }
};

// --- Means ------------------------------------------------------------------------------------------

template <class T, class Stored, class Windows>
__global__ void __launch_bounds__(kThreads) find_means(const Windows w, Stored* out, const Stored* in) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, size = w.out_size();
    for (int64_t o = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; o < w.planes * size;
         o += step) {
        const Stored* from = in + w.same_plane(o, size, w.in_size());
        const Box box(w, w.within_plane(o, size));
        T sum = 0;
        for (int64_t k = 0; k < box.x.count; ++k) {
            T column = 0;
            for (int64_t i = 0; i < box.z.count; ++i)
                for (int64_t j = 0; j < box.y.count; ++j)
                    column += static_cast<T>(from[box.position(w, i, j, k) * w.together]);
            sum += column;
        }
        const int64_t extent = box.z.extent * box.y.extent * box.x.extent;
        if constexpr (std::numeric_limits<Stored>::is_integer) {
            // Means of integers are truncated, and their sum wraps around.
            const int64_t by = w.divisor           ? w.divisor
                               : w.include_padding ? extent
                                                   : box.z.count * box.y.count * box.x.count;
            out[o] = by == 0 ? 0 : by == -1 ? static_cast<Stored>(-sum) : static_cast<Stored>(sum) / by;
        } else {
            out[o] = Stored(sum / static_cast<T>(w.divisor ? w.divisor : extent));
        }
    }
}

/// Computes the mean of each plane, or NaN if the plane is empty.
template <class T, class Stored>
__global__ void __launch_bounds__(kThreads) plane_means(const Rows s, Stored* out, const Stored* in) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = row < s.count ? s.size : 0;
        T sum = 0;
        for (int64_t i = lane; i < n; i += s.lanes) sum += static_cast<T>(in[row * s.size + i]);
        sum = over_lanes(room.x, lane, s.lanes, sum, Plus());
        if (lane == 0 && row < s.count) out[row] = Stored(sum / static_cast<T>(s.size));
    }
}

template <class T, class Stored, class Windows>
__global__ void __launch_bounds__(kThreads) spread_means(const Windows w, Stored* out, const Stored* grad) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, size = w.in_size();
    for (int64_t p = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; p < w.planes * size;
         p += step) {
        const Stored* from = grad + w.same_plane(p, size, w.out_size());
        const int64_t at = w.within_plane(p, size);
        const WindowRange z = w.around(0, at / (w.in[1] * w.in[2])), y = w.around(1, at / w.in[2] % w.in[1]),
                          x = w.around(2, at % w.in[2]);
        T sum = 0;
        for (int64_t i = z.first; i < z.end; ++i) {
            for (int64_t j = y.first; j < y.end; ++j) {
                const int64_t extent = w.span(0, i).extent * w.span(1, j).extent;
                T row = 0;
                for (int64_t k = x.first; k < x.end; ++k)
                    row += static_cast<T>(from[((i * w.out[1] + j) * w.out[2] + k) * w.together]) /
                           static_cast<T>(w.divisor ? w.divisor : extent * w.span(2, k).extent);
                sum += row;
            }
        }
        out[p] = Stored(sum);
    }
}

template <class T, class Stored, class Windows>
void queue_means(const KernelArgs& args, int dims, Windows w) {
    if (args.out(0).numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    const bool last = pools_channels_last(dims, args.in(0));
    if (last) w.together = args.in(0).size(1);
    const FormatOut<Stored> to(args.context, args.out(0), last);
    launch(&find_means<T, Stored, Windows>, Grid{blocks_for(args.out(0).numel), kThreads}, stream, w,
           to.data(), in_format<Stored>(args.context, args.in(0), last));
    to.finish();
}
template <class Stored, class Windows>
void queue_spread_means(const KernelArgs& args, int dims, Windows w) {
    if (args.out(0).numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    const bool last = pools_channels_last(dims, args.out(0));
    if (last) w.together = args.out(0).size(1);
    const FormatOut<Stored> to(args.context, args.out(0), last);
    launch(&spread_means<Computed<Stored>, Stored, Windows>, Grid{blocks_for(args.out(0).numel), kThreads},
           stream, w, to.data(), in_format<Stored>(args.context, args.in(0), last));
    to.finish();
}

SlidingWindows mean_windows(int dims, const View& input, const View& output, const KernelArgs& args) {
    constexpr int kIncludePadding = 4, kDivisor = 5;
    SlidingWindows w(dims, input, output, args, false);
    w.include_padding = args.params[kIncludePadding].as_bool();
    const Param& divisor = args.params[kDivisor];
    w.divisor = divisor.kind == Param::Kind::None ? 0 : divisor.as_int();
    return w;
}

template <int dims>
struct Mean {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue_means<Computed<Stored>, Stored>(args, dims, mean_windows(dims, args.in(0), args.out(0), args));
    }
};
template <int dims>
struct MeanBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue_spread_means<Stored>(args, dims, mean_windows(dims, args.out(0), args.in(0), args));
    }
};
template <int dims>
struct AdaptiveMean {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& out = args.out(0);
        const AdaptiveWindows w(dims, args.in(0), out);
        if (w.out_size() != 1 || pools_channels_last(dims, args.in(0)))
            return queue_means<T, Stored>(args, dims, w);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        const Rows rows(w.planes, w.in_size(), 1);
        const DenseOut<Stored> to(args.context, out);
        launch(&plane_means<T, Stored>, rows.grid(), stream, rows, to.data(),
               dense<Stored>(args.context, args.in(0)));
        to.finish();
    }
};
template <int dims>
struct AdaptiveMeanBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue_spread_means<Stored>(args, dims, AdaptiveWindows(dims, args.out(0), args.in(0)));
    }
};

template <int dims>
BackendStatus mean_pool(const KernelArgs* args) {
    if (args->in(0).dtype != DType::Int64) return by_floating_dtype<Mean<dims>>(args, args->in(0).dtype);
    return guarded([args] {
        queue_means<uint64_t, int64_t>(*args, dims, mean_windows(dims, args->in(0), args->out(0), *args));
    });
}

}  // namespace

BackendStatus max_pool2d(const KernelArgs* args) { return max_pool<2>(args); }
BackendStatus max_pool3d(const KernelArgs* args) { return max_pool<3>(args); }
BackendStatus max_pool2d_backward(const KernelArgs* args) {
    return by_floating_dtype<MaxBackward<2>>(args, args->in(0).dtype);
}
BackendStatus max_pool3d_backward(const KernelArgs* args) {
    return by_floating_dtype<MaxBackward<3>>(args, args->in(0).dtype);
}
BackendStatus avg_pool2d(const KernelArgs* args) { return mean_pool<2>(args); }
BackendStatus avg_pool3d(const KernelArgs* args) { return mean_pool<3>(args); }
BackendStatus avg_pool2d_backward(const KernelArgs* args) {
    return by_floating_dtype<MeanBackward<2>>(args, args->in(0).dtype);
}
BackendStatus avg_pool3d_backward(const KernelArgs* args) {
    return by_floating_dtype<MeanBackward<3>>(args, args->in(0).dtype);
}
BackendStatus adaptive_avg_pool2d(const KernelArgs* args) {
    return by_floating_dtype<AdaptiveMean<2>>(args, args->in(0).dtype);
}
BackendStatus adaptive_avg_pool3d(const KernelArgs* args) {
    return by_floating_dtype<AdaptiveMean<3>>(args, args->in(0).dtype);
}
BackendStatus adaptive_avg_pool2d_backward(const KernelArgs* args) {
    return by_floating_dtype<AdaptiveMeanBackward<2>>(args, args->in(0).dtype);
}
BackendStatus adaptive_avg_pool3d_backward(const KernelArgs* args) {
    return by_floating_dtype<AdaptiveMeanBackward<3>>(args, args->in(0).dtype);
}
BackendStatus adaptive_max_pool2d(const KernelArgs* args) {
    return by_floating_dtype<AdaptiveMax<2>>(args, args->in(0).dtype);
}
BackendStatus adaptive_max_pool3d(const KernelArgs* args) {
    return by_floating_dtype<AdaptiveMax<3>>(args, args->in(0).dtype);
}

}  // namespace rushlight::cuda
