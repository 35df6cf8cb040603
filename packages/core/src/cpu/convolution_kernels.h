// Convolution as matrix products, for float32 and float64: the implementation that needs no vendor library.
#pragma once

#include "cpu/capability.h"
#include "cpu/convolution_geometry.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// All operands are row-major.
template <class T>
struct PlainConvolution {
    // bias may be null
    void (*forward)(KernelContext&, const ConvolutionGeometry&, const T* in, const T* weight, const T* bias,
                    T* out);
    void (*backward_data)(KernelContext&, const ConvolutionGeometry&, T* grad_in, const T* weight,
                          const T* grad_out);
    void (*backward_weights)(KernelContext&, const ConvolutionGeometry&, T* grad_weight, const T* in,
                             const T* grad_out);
    // The sum of every channel of x (batch, channels, size), and adding one value to every channel.
    void (*channel_sums)(T* sums, const T* x, int64_t batch, int64_t channels, int64_t size);
    void (*add_to_channels)(T* x, const T* values, int64_t batch, int64_t channels, int64_t size);
};

/// The same for geometries that are depthwise.
template <class T>
struct DepthwiseConvolution {
    void (*forward)(KernelContext&, const ConvolutionGeometry&, const T* in, const T* weight, const T* bias,
                    T* out);
    void (*backward_data)(KernelContext&, const ConvolutionGeometry&, T* grad_in, const T* weight,
                          const T* grad_out);
    void (*backward_weights)(KernelContext&, const ConvolutionGeometry&, T* grad_weight, const T* in,
                             const T* grad_out);
};

struct DepthwiseKernels {
    DepthwiseConvolution<float> f32;
    DepthwiseConvolution<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(DepthwiseKernels, depthwise_kernels)

struct ConvolutionKernels {
    PlainConvolution<float> f32;
    PlainConvolution<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(ConvolutionKernels, convolution_kernels)

}  // namespace rushlight::cpu
