// Pooling over the last two or three dimensions, and its gradients; the dimensions before them count planes.
// A one-dimensional pool is a two-dimensional one of height 1. Lists have one entry or one for each pooled
// dimension; an empty stride means the kernel's size. float16 and bfloat16 go through float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// indices: int64 positions of the maxima within their planes, the first among equals, and -1 where a window lies in the
/// padding; may be undefined. NaN is a maximum, the last one of a window.
void max_pool2d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints kernel_size,
                Ints stride, Ints padding, Ints dilation, bool ceil_mode);
void max_pool3d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints kernel_size,
                Ints stride, Ints padding, Ints dilation, bool ceil_mode);
/// The gradients of max_pool2d and adaptive_max_pool2d: grad_output added where the indices point.
void max_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         const View& indices);
void max_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         const View& indices);

/// divisor_override 0: the size of the window, within the padded input or, unless count_include_pad, within
/// the input.
void avg_pool2d(KernelContext& ctx, const View& out, const View& input, Ints kernel_size, Ints stride,
                Ints padding, bool ceil_mode, bool count_include_pad, int64_t divisor_override);
void avg_pool3d(KernelContext& ctx, const View& out, const View& input, Ints kernel_size, Ints stride,
                Ints padding, bool ceil_mode, bool count_include_pad, int64_t divisor_override);
void avg_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         Ints kernel_size, Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                         int64_t divisor_override);
void avg_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         Ints kernel_size, Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                         int64_t divisor_override);

/// Windows that divide the input as evenly as they can: [floor(i in / out), ceil((i + 1) in / out)).
void adaptive_avg_pool2d(KernelContext& ctx, const View& out, const View& input, Ints output_size);
void adaptive_avg_pool3d(KernelContext& ctx, const View& out, const View& input, Ints output_size);
void adaptive_avg_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output);
void adaptive_avg_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output);
void adaptive_max_pool2d(KernelContext& ctx, const View& out, const View& indices, const View& input,
                         Ints output_size);
void adaptive_max_pool3d(KernelContext& ctx, const View& out, const View& indices, const View& input,
                         Ints output_size);

}  // namespace rushlight::cpu
