// Kernels of convolution for float32 and float64, which need no vendor library.
#pragma once

#include "cpu/capability.h"
#include "cpu/convolution_geometry.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The functions that compute a convolution and its gradients. All operands are row-major, unless the comment of a
/// table of kernels says otherwise.
template <class T>
struct ConvolutionWays {
    // `bias` may be null.
    void (*forward)(KernelContext&, const ConvolutionGeometry&, const T* in, const T* weight, const T* bias,
                    T* out);
    void (*backward_data)(KernelContext&, const ConvolutionGeometry&, T* grad_in, const T* weight,
                          const T* grad_out);
    void (*backward_weights)(KernelContext&, const ConvolutionGeometry&, T* grad_weight, const T* in,
                             const T* grad_out);
};

/// Kernels for every geometry.
template <class T>
struct PlainConvolution {
    ConvolutionWays<T> ways;
    // `channel_sums` computes the sum of every channel of x (batch, channels, size). `column_sums` computes the sum of every
    // column of x (rows, columns). `add_to_channels` adds one value to every channel.
    void (*channel_sums)(T* sums, const T* x, int64_t batch, int64_t channels, int64_t size);
    void (*column_sums)(KernelContext& ctx, T* sums, const T* x, int64_t rows, int64_t columns);
    void (*add_to_channels)(T* x, const T* values, int64_t batch, int64_t channels, int64_t size);
};

struct ConvolutionKernels {
    PlainConvolution<float> f32;
    PlainConvolution<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(ConvolutionKernels, convolution_kernels)

/// The input or output of a depthwise convolution, which is row-major or channels-last.
template <class T>
struct DepthwiseMap {
    T* data;
    bool channels_last;
};

/// The functions that compute a depthwise convolution and its gradients. The weights are row-major.
template <class T>
struct DepthwiseWays {
    // `bias` may be null.
    void (*forward)(KernelContext&, const ConvolutionGeometry&, DepthwiseMap<const T> in, const T* weight,
                    const T* bias, DepthwiseMap<T> out);
    // Either gradient may be null. The operand that the other gradient does not need may then be null, too: the weight
    // is needed only for grad_in, and the input only for grad_weight.
    void (*backward)(KernelContext&, const ConvolutionGeometry&, DepthwiseMap<T> grad_in, T* grad_weight,
                     DepthwiseMap<const T> in, const T* weight, DepthwiseMap<const T> grad_out);
};

/// Kernels for depthwise geometries of many channels.
struct DepthwiseKernels {
    DepthwiseWays<float> f32;
    DepthwiseWays<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(DepthwiseKernels, depthwise_kernels)

/// Kernels for depthwise geometries of few channels.
struct FlatKernels {
    ConvolutionWays<float> f32;
    ConvolutionWays<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(FlatKernels, flat_kernels)

/// Kernels for pointwise geometries.
struct PointwiseKernels {
    ConvolutionWays<float> f32;
    ConvolutionWays<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(PointwiseKernels, pointwise_kernels)
/// Kernels for pointwise geometries with a channels-last input and output. The weights are row-major.
RUSHLIGHT_KERNEL_TABLE(PointwiseKernels, channel_pointwise_kernels)

/// Kernels of minimal filtering (Winograd) for two dimensions, one group, 3x3 filters, stride and dilation 1, and
/// padding up to 2.
struct WinogradKernels {
    ConvolutionWays<float> f32;
};

RUSHLIGHT_KERNEL_TABLE(WinogradKernels, winograd_kernels)

}  // namespace rushlight::cpu
