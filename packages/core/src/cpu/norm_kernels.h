// The loops behind norm.h, on row-major arrays. Pointers that may be null are those of undefined views.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// (batch, channels, size)
template <class T>
struct BatchNorm {
    int64_t batch, channels, size;
    const T* input;
    const T* weight;
    const T* bias;
    T* running_mean;
    T* running_var;
    bool training;
    T momentum, eps;
    bool stream;  // out past the caches
    T* out;
    T* save_mean;
    T* save_invstd;
};

template <class T>
struct BatchNormBackward {
    int64_t batch, channels, size;
    const T* grad_output;
    const T* activation;  // if any, grad_output counts as 0 where it is at most low or at least high
    T low, high;
    const T* input;
    const T* weight;
    const T* mean;    // those that the forward pass used
    const T* invstd;
    bool training;
    bool stream;  // grad_input past the caches
    T* grad_input;
    T* grad_weight;
    T* grad_bias;
};

/// (rows, size); without `centered` the mean counts as zero and is not touched.
template <class T>
struct RowNorm {
    int64_t rows, size;
    bool centered;
    const T* input;
    const T* weight;
    const T* bias;
    T eps;
    T* out;
    T* mean;
    T* rstd;
};

template <class T>
struct RowNormBackward {
    int64_t rows, size;
    bool centered;
    const T* grad_output;
    const T* input;
    const T* mean;
    const T* rstd;
    const T* weight;
    T* grad_input;
    T* grad_weight;
    T* grad_bias;
};

/// (batch, groups, channels, size), channels counted within a group
template <class T>
struct GroupNorm {
    int64_t batch, groups, channels, size;
    const T* input;
    const T* weight;
    const T* bias;
    T eps;
    T* out;
    T* mean;
    T* rstd;
};

template <class T>
struct GroupNormBackward {
    int64_t batch, groups, channels, size;
    const T* grad_output;
    const T* input;
    const T* mean;
    const T* rstd;
    const T* weight;
    T* grad_input;
    T* grad_weight;
    T* grad_bias;
};

template <class T>
struct BatchNormLoops {
    void (*batch_norm)(const BatchNorm<T>&);
    void (*batch_norm_backward)(const BatchNormBackward<T>&);
};
struct BatchNormKernels {
    BatchNormLoops<float> f32;
    BatchNormLoops<double> f64;
};
RUSHLIGHT_KERNEL_TABLE(BatchNormKernels, batch_norm_kernels)

template <class T>
struct RowNormLoops {
    void (*row_norm)(const RowNorm<T>&);
    void (*row_norm_backward)(KernelContext&, const RowNormBackward<T>&);
    void (*group_norm)(const GroupNorm<T>&);
    void (*group_norm_backward)(KernelContext&, const GroupNormBackward<T>&);
};
struct RowNormKernels {
    RowNormLoops<float> f32;
    RowNormLoops<double> f64;
};
RUSHLIGHT_KERNEL_TABLE(RowNormKernels, row_norm_kernels)

}  // namespace rushlight::cpu
