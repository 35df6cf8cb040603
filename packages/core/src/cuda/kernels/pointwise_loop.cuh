// Builds the CUDA loops of an operator from a functor on elements. Included by generated kernel files only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "cuda/divider.h"
#include "cuda/kernels/elements.cuh"
#include "cuda/launch.h"

namespace rushlight::cuda {
namespace {

inline constexpr int kThreads = 256;

/// Returns the number of blocks for `n` work items. If there are many items, each thread processes several.
inline unsigned blocks_for(int64_t n) {
    constexpr int64_t kMost = 1 << 12;
    const int64_t blocks = (n + kThreads - 1) / kThreads;
    return static_cast<unsigned>(blocks < kMost ? blocks : kMost);
}

// On a GPU, a branch costs less than a second loop: Note [Optional parts of a functor].
template <class F, class... V>
__device__ auto value_of(const F& f, V... values) {
    if constexpr (requires { f.moderate(values...); }) {
        return f.moderate(values...) ? f(values...) : f.rare(values...);
    } else if constexpr (requires { f.rare(values...); }) {
        const auto result = f(values...);
        return f.settled(result, values...) ? result : f.rare(values...);
    } else {
        return f(values...);
    }
}

// --- Contiguous elements, in the loop's own dtypes ------------------------------------------------

template <class T, int kPack>
struct alignas(sizeof(T) * kPack) Packed {
    T x[kPack];
};

/// Contiguous memory, or one value for all elements.
struct DenseOperand {
    char* data;
    Cell number;
};
template <int count>
struct DenseOperands {
    DenseOperand of[count];
};

template <class T, int kPack>
__device__ Packed<T, kPack> pack_at(const DenseOperand& operand, uint32_t i) {
    if (operand.data) return reinterpret_cast<const Packed<T, kPack>*>(operand.data)[i];
    Packed<T, kPack> same;
    for (int k = 0; k < kPack; ++k) same.x[k] = *reinterpret_cast<const T*>(&operand.number);
    return same;
}

template <class F, class R, int kPack, class... In>
__device__ void pack(const F& f, char* out, uint32_t i, Packed<In, kPack>... in) {
    Packed<R, kPack> made;
#pragma unroll
    for (int k = 0; k < kPack; ++k) made.x[k] = value_of(f, in.x[k]...);
    reinterpret_cast<Packed<R, kPack>*>(out)[i] = made;
}

template <int kPack, class F, class R, class... In, size_t... I>
__device__ void each_pack(const F& f, const DenseOperands<1 + sizeof...(In)>& operands, uint32_t n,
                          std::index_sequence<I...>) {
    const uint32_t first = blockIdx.x * kThreads + threadIdx.x, step = gridDim.x * kThreads;
    for (uint32_t i = first; i < n / kPack; i += step)
        pack<F, R, kPack, In...>(f, operands.of[0].data, i, pack_at<In, kPack>(operands.of[1 + I], i)...);
    for (uint32_t i = n / kPack * kPack + first; i < n; i += step)
        pack<F, R, 1, In...>(f, operands.of[0].data, i, pack_at<In, 1>(operands.of[1 + I], i)...);
}

template <int kPack, class F, class R, class... In>
__global__ void __launch_bounds__(kThreads)
    pointwise_dense(const F f, const DenseOperands<1 + sizeof...(In)> operands, uint32_t n) {
    each_pack<kPack, F, R, In...>(f, operands, n, std::index_sequence_for<In...>{});
}

/// Whether each operand of a pass is a number, or contiguous memory in the loop's dtype, aligned to a pack of elements.
template <int kPack>
bool is_dense(const Pass& pass) {
    if (pass.ndim > 1) return false;
    for (int k = 0; k < pass.count; ++k) {
        const PassOperand& operand = pass.operands[k];
        if (!operand.data) continue;
        const size_t size = itemsize(operand.dtype);
        if (operand.dtype != operand.loop_dtype ||
            (pass.n > 1 && operand.strides[0] != static_cast<int64_t>(size)) ||
            reinterpret_cast<uintptr_t>(operand.data) % (size * kPack) != 0)
            return false;
    }
    return true;
}

// --- Strided elements of any dtype ----------------------------------------------------------------

struct StridedOperand {
    char* data;
    DType dtype;
    int64_t strides[kLoopDims];
    Cell number;
};
template <int count>
struct StridedOperands {
    int ndim;
    Divider sizes[kLoopDims];
    StridedOperand of[count];
};

template <class T>
__device__ T element(const StridedOperand& operand, int64_t offset) {
    if (!operand.data) return *reinterpret_cast<const T*>(&operand.number);
    return read<T>(operand.data + offset, operand.dtype);
}

template <class F, class R, class... In, size_t... I>
__device__ void each_element(const F& f, const StridedOperands<1 + sizeof...(In)>& operands, uint32_t n,
                             std::index_sequence<I...>) {
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
        int64_t offset[1 + sizeof...(In)] = {};
        uint32_t rest = i;
        for (int d = operands.ndim - 1; d >= 0; --d) {
            const uint32_t above = operands.sizes[d].divide(rest),
                           at = rest - above * operands.sizes[d].divisor;
            for (size_t k = 0; k <= sizeof...(In); ++k) offset[k] += at * operands.of[k].strides[d];
            rest = above;
        }
        write<R>(operands.of[0].data + offset[0], operands.of[0].dtype,
                 value_of(f, element<In>(operands.of[1 + I], offset[1 + I])...));
    }
}

template <class F, class R, class... In>
__global__ void __launch_bounds__(kThreads)
    pointwise_strided(const F f, const StridedOperands<1 + sizeof...(In)> operands, uint32_t n) {
    each_element<F, R, In...>(f, operands, n, std::index_sequence_for<In...>{});
}

template <class F, class R, class... In>
void run_loop(const Pass& pass, const Scalar* params, cudaStream_t stream) {
    constexpr int kCount = 1 + sizeof...(In);
    constexpr size_t kLargest = [] {
        size_t largest = sizeof(R);
        ((largest = sizeof(In) > largest ? sizeof(In) : largest), ...);
        return largest;
    }();
    constexpr int kPack = kLargest >= 16                        ? 1
                          : static_cast<int>(16 / kLargest) < 8 ? static_cast<int>(16 / kLargest)
                                                                : 8;
    const auto n = static_cast<uint32_t>(pass.n);
    if (is_dense<kPack>(pass)) {
        DenseOperands<kCount> operands;
        for (int k = 0; k < kCount; ++k) operands.of[k] = {pass.operands[k].data, pass.operands[k].number};
        return launch(&pointwise_dense<kPack, F, R, In...>,
                      Grid{blocks_for((n + kPack - 1) / kPack), kThreads}, stream, F(params), operands, n);
    }
    StridedOperands<kCount> operands;
    operands.ndim = pass.ndim;
    for (int d = 0; d < pass.ndim; ++d) operands.sizes[d] = Divider(static_cast<uint32_t>(pass.sizes[d]));
    for (int k = 0; k < kCount; ++k) {
        operands.of[k] = {pass.operands[k].data, pass.operands[k].dtype, {}, pass.operands[k].number};
        for (int d = 0; d < pass.ndim; ++d) operands.of[k].strides[d] = pass.operands[k].strides[d];
    }
    launch(&pointwise_strided<F, R, In...>, Grid{blocks_for(n), kThreads}, stream, F(params), operands, n);
}

template <class F, class R, class... In>
constexpr LoopFn loop_of(R (F::*)(In...) const) {
    return &run_loop<F, R, In...>;
}

template <template <class> class F, class... T>
constexpr LoopTable loops(Types<T...>) {
    LoopTable table{};
    ((table.loop[static_cast<int>(DTypeOf<T>::value)] = loop_of(&F<T>::operator())), ...);
    return table;
}

}  // namespace
}  // namespace rushlight::cuda
