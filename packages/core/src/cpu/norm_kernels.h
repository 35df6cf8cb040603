// Kernels of the operators in norm.h, on row-major arrays. The pointer of an undefined view is null.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Batch normalization of an input (batch, channels, size). In a channels-last input, each position counts as a sample
/// of its own, and `size` is 1.
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
    bool stream;  // write `out` with streaming stores
    T* out;
    T* save_mean;
    T* save_invstd;
};

template <class T>
struct BatchNormBackward {
    int64_t batch, channels, size;
    const T* grad_output;
    const T* activation;  // if not null, grad_output is taken as 0 where this is <= low or >= high
    T low, high;
    const T* input;
    const T* weight;
    const T* mean;    // statistics used in the forward pass
    const T* invstd;
    bool training;
    bool stream;  // write grad_input with streaming stores
    T* grad_input;
    T* grad_weight;
    T* grad_bias;
};

/// Normalization of the rows of an input (rows, size). If `centered` is false, the mean is taken as 0 and `mean` is not
/// accessed.
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

/// Group normalization of an input (batch, groups, channels, size), where `channels` is the number of channels of each
/// group.
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
    void (*batch_norm)(KernelContext&, const BatchNorm<T>&);
    void (*batch_norm_backward)(KernelContext&, const BatchNormBackward<T>&);
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

template <class T>
struct GroupNormLoops {
    void (*group_norm)(KernelContext&, const GroupNorm<T>&);
    void (*group_norm_backward)(KernelContext&, const GroupNormBackward<T>&);
};
struct GroupNormKernels {
    GroupNormLoops<float> f32;
    GroupNormLoops<double> f64;
};
/// Group normalization of channels-last inputs: (batch, size, groups, channels).
RUSHLIGHT_KERNEL_TABLE(GroupNormKernels, channel_group_norm_kernels)

}  // namespace rushlight::cpu
