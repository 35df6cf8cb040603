// Reflection, replication and circular padding. In the gradient, each element sums the gradients of all its copies.
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"
#include "ops/functors/padding.h"

namespace rushlight::cuda {
namespace {

using functors::padded_from;

/// A padded, row-major tensor, and the strided tensor that is padded.
struct Padded {
    int ndim;
    PadMode mode;
    int64_t small[kLoopDims], large[kLoopDims], before[kLoopDims], strides[kLoopDims];

    Padded(const View& inner, const View& outer, Ints padding, PadMode given)
        : ndim(inner.ndim), mode(given) {
        if (ndim > kLoopDims)
            fail(BackendStatus::NotImplemented, "has no kernel for more than %d dimensions", kLoopDims);
        for (int d = 0; d < ndim; ++d) {
            const int64_t from_last = ndim - 1 - d;
            small[d] = inner.sizes[d];
            large[d] = outer.sizes[d];
            before[d] = 2 * from_last < padding.size ? padding[2 * from_last] : 0;
            strides[d] = inner.strides[d];
        }
    }

    /// Returns the offset of the element that padded element `i` copies.
    __device__ int64_t source(int64_t i) const {
        int64_t found = 0;
        for (int d = ndim - 1; d >= 0; --d) {
            found += padded_from(i % large[d] - before[d], small[d], mode) * strides[d];
            i /= large[d];
        }
        return found;
    }

    /// The positions along a dimension of the padded tensor that contain a copy of element `at`. They form at most
    /// three runs, in ascending order.
    struct Runs {
        int count = 0;
        int64_t begin[3], end[3];
        __device__ void add(int64_t from, int64_t to, int64_t size) {
            if (from < 0 || to > size) return;
            begin[count] = from;
            end[count++] = to;
        }
    };
    __device__ Runs runs(int d, int64_t at) const {
        const int64_t size = small[d], position = before[d] + at;
        Runs found;
        if (mode == PadMode::Replicate) {
            found.add(at == 0 ? 0 : position, at == size - 1 ? large[d] : position + 1, large[d]);
            return found;
        }
        const int64_t first = mode == PadMode::Reflect ? before[d] - at : position - size,
                      last = mode == PadMode::Reflect ? before[d] + 2 * (size - 1) - at : position + size;
        if (first != position) found.add(first, first + 1, large[d]);
        found.add(position, position + 1, large[d]);
        if (last != position) found.add(last, last + 1, large[d]);
        return found;
    }
};

template <class T>
__global__ void __launch_bounds__(kThreads) extend(const Padded p, T* out, const T* in, int64_t n) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step)
        out[i] = in[p.source(i)];
}

/// Computes for each element of the input the sum of the gradients of its copies. The loop over the runs of the last
/// dimension is the innermost loop.
template <class T>
struct Fold {
    Padded p;
    T* out;
    const T* grad;

    __device__ void operator()(int64_t i) const {
        Padded::Runs runs[kLoopDims];
        int which[kLoopDims];
        int64_t at[kLoopDims], rest = i;
        for (int d = p.ndim - 1; d >= 0; --d) {
            runs[d] = p.runs(d, rest % p.small[d]);
            rest /= p.small[d];
            which[d] = 0;
            at[d] = runs[d].begin[0];
        }
        using C = Computed<T>;
        C sum = C(0);
        for (bool more = true; more;) {
            int64_t position = 0;
            for (int d = 0; d < p.ndim; ++d) position = position * p.large[d] + at[d];
            sum = static_cast<C>(sum + static_cast<C>(grad[position]));
            more = false;
            for (int d = p.ndim - 1; d >= 0 && !more; --d) {
                more = true;
                if (++at[d] < runs[d].end[which[d]]) continue;
                if (++which[d] == runs[d].count) {
                    which[d] = 0;
                    more = false;
                }
                at[d] = runs[d].begin[which[d]];
            }
        }
        out[i] = static_cast<T>(sum);
    }
};

}  // namespace

BackendStatus pad(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0);
        if (out.numel == 0) return;
        const Padded padded(in, out, args->params[0].as_ints(), pad_mode_of(args->params[1].as_string()));
        const cudaStream_t stream = queue_of(*args);
        by_size(out.dtype, [&]<class T>(T) {
            launch(&extend<T>, Grid{blocks_for(out.numel), kThreads}, stream, padded, out.as<T>(),
                   in.as<const T>(), out.numel);
        });
    });
}

BackendStatus pad_backward(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &grad = args->in(0);
        if (out.numel == 0) return;
        queue_of(*args);
        const Padded padded(out, grad, args->params[0].as_ints(), pad_mode_of(args->params[1].as_string()));
        using Elements = Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, Half,
                               BFloat16, float, double, Complex<float>, Complex<double>>;
        by_element_type(Elements{}, out.dtype, [&]<class T>(T) {
            queue_for_each(*args, out.numel, Fold<T>{padded, out.as<T>(), dense<T>(args->context, grad)});
        });
    });
}

}  // namespace rushlight::cuda
