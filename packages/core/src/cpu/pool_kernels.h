// Kernels of the operators in pool.h, on row-major arrays. The arrays of channels-last tensors have the channels after the
// positions.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Each array of sizes has three elements, of which a two-dimensional pool uses the last two and sets the first, the
/// depth, to 1. The arrays are (planes, in) and (planes, out), or (planes, in, channels) and (planes, out, channels)
/// for the kernels of channels-last tensors.
struct PoolGeometry {
    int64_t planes, channels;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

    int64_t in_size() const { return in[0] * in[1] * in[2]; }
    int64_t out_size() const { return out[0] * out[1] * out[2]; }
};

/// The divisor of the sum over a window.
struct PoolDivisor {
    bool include_padding;
    int64_t override_with;  // 0 stands for the window's size
};

template <class T>
struct PoolLoops {
    void (*max)(KernelContext&, const PoolGeometry&, T* out, int64_t* indices,
                const T* in);  // indices may be null
    // Returns whether all indices lie within their planes.
    bool (*max_backward)(const PoolGeometry&, T* grad_in, const T* grad_out, const int64_t* indices);
    void (*average)(KernelContext&, const PoolGeometry&, PoolDivisor, T* out, const T* in);
    void (*average_backward)(KernelContext&, const PoolGeometry&, PoolDivisor, T* grad_in, const T* grad_out);
    // The adaptive kernels do not read kernel, stride, padding and dilation.
    void (*adaptive_average)(KernelContext&, const PoolGeometry&, T* out, const T* in);
    void (*adaptive_average_backward)(KernelContext&, const PoolGeometry&, T* grad_in, const T* grad_out);
    void (*adaptive_max)(KernelContext&, const PoolGeometry&, T* out, int64_t* indices, const T* in);
};

struct PoolKernels {
    PoolLoops<float> f32;
    PoolLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(PoolKernels, pool_kernels)
/// The kernels of channels-last tensors.
RUSHLIGHT_KERNEL_TABLE(PoolKernels, channel_pool_kernels)

}  // namespace rushlight::cpu
