// From a functor on elements to the CUDA loops of one operator. Included by generated kernel files only.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

#include "cuda/loop_table.h"
#include "ops/element_types.h"

namespace rushlight::cuda {
namespace {

inline constexpr int kThreads = 256;

/// How many blocks serve `n` elements: each thread takes several where there are many.
inline unsigned blocks_for(int64_t n) {
    constexpr int64_t kMost = 1 << 16;
    const int64_t blocks = (n + kThreads - 1) / kThreads;
    return static_cast<unsigned>(blocks < kMost ? blocks : kMost);
}

/// Where the elements of one operand lie; a stride of 0 repeats one element. Strides count bytes.
struct Operand {
    char* data;
    int64_t stride;

    template <class T>
    __device__ T& at(int64_t i) const {
        return *reinterpret_cast<T*>(data + i * stride);
    }
};
template <int count>
struct Operands {
    Operand of[count];
};

// A jump costs a GPU less than a second loop: Note [Optional parts of a functor].
template <class F, class... V>
__device__ auto value_of(const F& f, V... values) {
    if constexpr (requires { f.rare(values...); })
        return f.moderate(values...) ? f(values...) : f.rare(values...);
    else return f(values...);
}

template <class F, class R, class... In, size_t... I>
__device__ void each_element(const F& f, const Operands<1 + sizeof...(In)>& operands, int64_t n,
                             std::index_sequence<I...>) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; i < n; i += step)
        operands.of[0].template at<R>(i) = value_of(f, operands.of[1 + I].template at<const In>(i)...);
}

template <class F, class R, class... In>
__global__ void __launch_bounds__(kThreads)
    pointwise(const F f, const Operands<1 + sizeof...(In)> operands, int64_t n) {
    each_element<F, R, In...>(f, operands, n, std::index_sequence_for<In...>{});
}

template <class F, class R, class... In>
cudaError_t launch(char* const* data, const int64_t* strides, int64_t n, const Scalar* params,
                   cudaStream_t stream) {
    if (n == 0) return cudaSuccess;
    Operands<1 + sizeof...(In)> operands;
    for (size_t k = 0; k <= sizeof...(In); ++k) operands.of[k] = {data[k], strides[k]};
    pointwise<F, R, In...><<<blocks_for(n), kThreads, 0, stream>>>(F(params), operands, n);
    return cudaGetLastError();
}

template <class F, class R, class... In>
constexpr LoopFn loop_of(R (F::*)(In...) const) {
    return &launch<F, R, In...>;
}

template <template <class> class F, class... T>
constexpr LoopTable loops(Types<T...>) {
    LoopTable table{};
    ((table.loop[static_cast<int>(DTypeOf<T>::value)] = loop_of(&F<T>::operator())), ...);
    return table;
}

}  // namespace
}  // namespace rushlight::cuda
