// Kernels of resample.h, on row-major arrays of shape (outer, positions, inner).
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Describes a resampling along one dimension: for each output element, the indices and the weights of the input
/// elements of which it is the weighted sum. Element j of the output is the sum over k < taps of weight[j * taps + k] *
/// input[index[j * taps + k]].
template <class T>
struct Taps {
    int64_t taps;
    const int64_t* index;
    const T* weight;
};

/// The weights of Taps, listed by input position. The gradient of input position i is the sum over begin[i] <= k <
/// begin[i + 1] of weight[k] * grad_output[index[k]]. Weights of 0 are left out. `each` is the number of terms of each
/// sum if all sums have the same number of terms, and otherwise 0.
template <class T>
struct Contributions {
    int64_t each;
    const int64_t* begin;
    const int64_t* index;
    const T* weight;
};

template <class T>
struct ResampleLoops {
    void (*forward)(int64_t outer, int64_t in, int64_t out, int64_t inner, Taps<T>, T* to, const T* from);
    void (*backward)(int64_t outer, int64_t in, int64_t out, int64_t inner, Contributions<T>, T* to,
                     const T* from);
};

struct ResampleKernels {
    ResampleLoops<float> f32;
    ResampleLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(ResampleKernels, resample_kernels)

}  // namespace rushlight::cpu
