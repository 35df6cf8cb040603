// Kernels of the losses in loss.h, on row-major arrays. `input` and its gradient have the shape (batch, classes,
// inner); `target`, the losses, their gradient and log_sum have the shape (batch, inner).
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

template <class T>
struct CrossEntropy {
    int64_t batch, classes, inner;
    const T* input;
    const int64_t* target;
    const T* weight;  // may be null
    int64_t ignore_index;
    T smoothing;
};

template <class T>
struct LossLoops {
    // Computes log_sum at each position.
    void (*log_sums)(const CrossEntropy<T>&, T* log_sum);
    // Computes the loss at each position; it is 0 if the target is ignored.
    void (*cross_entropy)(const CrossEntropy<T>&, T* loss, const T* log_sum);
    // Computes grad_input from the gradient of each position's loss.
    void (*cross_entropy_backward)(const CrossEntropy<T>&, T* grad_input, const T* grad, const T* log_sum);
};

struct LossKernels {
    LossLoops<float> f32;
    LossLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(LossKernels, loss_kernels)

}  // namespace rushlight::cpu
