// Kernels of the operators in softmax.h, on row-major arrays (outer, size, inner). The sums are over `size`.
#pragma once

#include "cpu/capability.h"
#include "cpu/split_shape.h"

namespace rushlight::cpu {

template <class T>
struct SoftmaxLoops {
    void (*softmax)(const SplitShape&, T* out, const T* in);
    void (*log_softmax)(const SplitShape&, T* out, const T* in);
    void (*softmax_backward)(const SplitShape&, T* grad_in, const T* grad_out, const T* out);
    void (*log_softmax_backward)(const SplitShape&, T* grad_in, const T* grad_out, const T* out);
};

struct SoftmaxKernels {
    SoftmaxLoops<float> f32;
    SoftmaxLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(SoftmaxKernels, softmax_kernels)

}  // namespace rushlight::cpu
