// Kernels of resample.h, on row-major arrays of shape (outer, positions, inner).
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Output j is the sum over k < taps of weight[j taps + k] times the input element index[j taps + k].
template <class T>
struct Taps {
    int64_t taps;
    const int64_t* index;
    const T* weight;
};

template <class T>
struct ResampleLoops {
    void (*forward)(int64_t outer, int64_t in, int64_t out, int64_t inner, Taps<T>, T* to, const T* from);
    // Adds to `to` (outer, in, inner), which the caller has set to zero.
    void (*backward)(int64_t outer, int64_t in, int64_t out, int64_t inner, Taps<T>, T* to, const T* from);
};

struct ResampleKernels {
    ResampleLoops<float> f32;
    ResampleLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(ResampleKernels, resample_kernels)

}  // namespace rushlight::cpu
