// From a reducer to the CUDA kernels of one reduction. What a reducer is, cpu/kernels/reduce_loop.h says. Included by
// generated kernel files only.
#pragma once

#include "cuda/kernels/pointwise_loop.cuh"

namespace rushlight::cuda {
namespace {

// Each block makes one result at a time. Its threads take runs of elements one behind the other, since a reducer joins the
// earlier run to the later: runs are joined as a tree, so that the order does not depend on timing.
template <class R, class T, class Stored>
__global__ void __launch_bounds__(kThreads) reduce(const R r, char* out, char* second, const char* in,
                                                   int64_t count, int64_t step, int64_t n, int64_t stride) {
    using Acc = typename R::Acc;
    __shared__ alignas(alignof(Acc)) unsigned char room[kThreads * sizeof(Acc)];
    Acc* const partial = reinterpret_cast<Acc*>(room);
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t share = (n + kThreads - 1) / kThreads;
    const int64_t begin = share * thread < n ? share * thread : n,
                  end = begin + share < n ? begin + share : n;
    for (int64_t result = blockIdx.x; result < count; result += gridDim.x) {
        const char* const line = in + result * step;
        Acc acc = r.start();
        for (int64_t i = begin; i < end; ++i) {
            const T x = static_cast<T>(*reinterpret_cast<const Stored*>(line + i * stride));
            if constexpr (requires { r.step(acc, x, i); }) acc = r.step(acc, x, i);
            else acc = r.step(acc, x);
        }
        partial[thread] = acc;
        for (int apart = 1; apart < kThreads; apart *= 2) {
            __syncthreads();
            if (thread % (2 * apart) == 0) partial[thread] = r.join(partial[thread], partial[thread + apart]);
        }
        if (thread == 0) {
            reinterpret_cast<typename R::Wide*>(out)[result] = r.finish(partial[0], n);
            if constexpr (requires { r.index(partial[0]); }) {
                if (second) reinterpret_cast<int64_t*>(second)[result] = r.index(partial[0]);
            }
        }
        __syncthreads();
    }
}

template <class R, class T, class Stored>
cudaError_t launch(char* out, char* second, const char* in, int64_t count, int64_t step, int64_t n,
                   int64_t stride, const Scalar* params, cudaStream_t stream) {
    if (count == 0) return cudaSuccess;
    constexpr int64_t kMost = 1 << 16;
    const auto blocks = static_cast<unsigned>(count < kMost ? count : kMost);
    reduce<R, T, Stored><<<blocks, kThreads, 0, stream>>>(R(params), out, second, in, count, step, n, stride);
    return cudaGetLastError();
}

template <template <class> class R, class... T>
constexpr ReduceTable reducers(Types<T...>) {
    ReduceTable table{};
    ((table.loop[static_cast<int>(DTypeOf<T>::value)] = &launch<R<T>, T, T>), ...);
    if (table.loop[static_cast<int>(DType::Float32)]) {
        table.loop[static_cast<int>(DType::Float16)] = &launch<R<float>, float, Half>;
        table.loop[static_cast<int>(DType::BFloat16)] = &launch<R<float>, float, BFloat16>;
    }
    return table;
}

}  // namespace
}  // namespace rushlight::cuda
