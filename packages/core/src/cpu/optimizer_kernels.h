// Kernels of the optimizers in optimizer.h, on arrays whose elements are in the same order.
#pragma once

#include "cpu/capability.h"
#include "ops/functors/optimizer.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

struct SgdStep {
    void* param;
    const void* grad;
    void* momentum_buffer;  // null without momentum
    double grad_scale;      // if this is 1, the gradient is not written
    double weight_decay, momentum, lr, dampening;
    bool nesterov, maximize, is_first_step;
    bool larger_than_caches;  // whether all arrays of the step exceed the caches
};

struct AdamStep {
    void* param;
    const void* grad;
    void* exp_avg;
    void* exp_avg_sq;
    void* max_exp_avg_sq;  // null without amsgrad
    double grad_scale;
    double step;
    double lr, beta1, beta2, weight_decay, eps;
    bool decoupled, maximize;
    bool larger_than_caches;
};

/// The arrays that an optimizer of ops/functors/optimizer.h reads and writes in one step.
struct StepArrays {
    void* param;
    const void* grad;
    void* state[3];
    bool larger_than_caches;
};

/// The kernel of an optimizer of ops/functors/optimizer.h.
template <class Kind>
struct StepKernel {
    void (*run)(DType, const StepArrays&, const steps::Gradient&, const typename Kind::Update&, int64_t begin,
                int64_t end);
};
template <class Kinds>
struct StepKernels;
template <class... Kind>
struct StepKernels<steps::KindList<Kind...>> : StepKernel<Kind>... {};

struct OptimizerKernels {
    // Updates elements [begin, end).
    void (*sgd)(DType, const SgdStep&, int64_t begin, int64_t end);
    void (*adam)(DType, const AdamStep&, int64_t begin, int64_t end);
    StepKernels<steps::AllKinds> steps;
};

RUSHLIGHT_KERNEL_TABLE(OptimizerKernels, optimizer_kernels)

}  // namespace rushlight::cpu
