// Rows of elements that the threads of a block share, and sums over rows.
#pragma once

#include "cuda/kernels/pointwise_loop.cuh"
#include "cuda/pointwise.h"
#include "cuda/queue.h"

namespace rushlight::cuda {
namespace {

/// Rows of `size` elements of a row-major array. The elements of a row are `inner` elements apart. A block processes
/// kThreads / lanes rows at a time.
struct Rows {
    int64_t count, size, inner;
    uint32_t lanes;

    /// Creates the rows of an array (outer, size, inner).
    Rows(int64_t outer, int64_t n, int64_t apart) : count(outer * apart), size(n), inner(apart), lanes(1) {
        while (lanes < kThreads && lanes < size) lanes *= 2;
    }
    __device__ int64_t first(int64_t row) const { return row / inner * size * inner + row % inner; }
    Grid grid() const {
        const int64_t groups = (count * lanes + kThreads - 1) / kThreads;
        return {blocks_for(groups * kThreads), kThreads};
    }
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

/// Reduces the values of the threads of a row. All threads of a block must call it. `room` has an element for each thread.
template <class T, class F>
__device__ T over_lanes(T* room, uint32_t lane, uint32_t lanes, T value, F f) {
    __syncthreads();  // all threads have read `room`
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

/// Returns the exclusive prefix sum of the threads' values, and stores their sum in `all`. For types whose sums do not
/// depend on the order. All threads of a block must call it.
template <class T>
__device__ T sum_before(T* room, T value, T& all) {
    T sum = value;
    for (uint32_t apart = 1; apart < kThreads; apart *= 2) {
        __syncthreads();  // all threads have read `room`
        room[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x >= apart) sum += room[threadIdx.x - apart];
    }
    __syncthreads();
    room[threadIdx.x] = sum;
    __syncthreads();
    all = room[kThreads - 1];
    return sum - value;
}

/// Calls `each(i)` for every i below n.
template <class F>
__global__ void __launch_bounds__(kThreads) for_each(const F each, int64_t n) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) each(i);
}
template <class F>
void queue_for_each(const F& each, int64_t n, cudaStream_t stream) {
    if (n > 0) launch(&for_each<F>, Grid{blocks_for(n), kThreads}, stream, each, n);
}
template <class F>
void queue_for_each(const KernelArgs& args, int64_t n, const F& each) {
    queue_for_each(each, n, queue_of(args));
}

/// Returns a row-major view of dtype T: the given memory, or a copy in scratch memory. Returns null if the view is absent.
template <class T>
const T* dense(KernelContext* context, const View& v) {
    constexpr DType kDType = DTypeOf<T>::value;
    if (!v.defined()) return nullptr;
    if (v.contiguous && v.dtype == kDType) return v.as<const T>();
    T* made = scratch<T>(context, v.numel);
    const RowMajor strides(v.sizes, v.ndim);
    queue_copy(View{made, v.sizes, strides.strides, v.numel, v.ndim, kDType, 1}, v, context);
    return made;
}

/// Row-major memory of dtype T for an output: the output's own memory, or scratch memory that `finish` copies to the
/// output.
template <class T>
class DenseOut {
  public:
    DenseOut(KernelContext* context, const View& out) : context_(context), out_(out) {
        if (!out.defined()) return;
        writes_output_ = out.contiguous && out.dtype == DTypeOf<T>::value;
        data_ = writes_output_ ? out.as<T>() : scratch<T>(context, out.numel);
    }
    /// Null if the output is absent.
    T* data() const { return data_; }
    void finish() const {
        if (writes_output_ || !data_) return;
        const RowMajor strides(out_.sizes, out_.ndim);
        queue_copy(out_,
                   View{data_, out_.sizes, strides.strides, out_.numel, out_.ndim, DTypeOf<T>::value, 1},
                   context_);
    }

  private:
    KernelContext* context_;
    const View& out_;
    T* data_ = nullptr;
    bool writes_output_ = false;
};

/// Calls `F::run<T>(args)` with the element type of a floating-point output or input.
template <class F>
BackendStatus by_floating_dtype(const KernelArgs* args, DType dtype) {
    return guarded([=] {
        switch (dtype) {
            case DType::Float16: return F::template run<Half>(*args);
            case DType::BFloat16: return F::template run<BFloat16>(*args);
            case DType::Float32: return F::template run<float>(*args);
            case DType::Float64: return F::template run<double>(*args);
            default: fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(dtype));
        }
    });
}

}  // namespace
}  // namespace rushlight::cuda
