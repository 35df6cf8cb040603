// Pooling over the last two or three dimensions, and its gradients. The dimensions before them are flattened into
// planes. A one-dimensional pool is a two-dimensional pool of height 1. A list has one entry, or one for each
// pooled dimension; an empty `stride` means the kernel's size. float16 and bfloat16 are computed in float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `indices` (int64, may be undefined) receives the position of each window's maximum within its plane: the position of
/// the first of equal maxima, or -1 if the window lies entirely in the padding. NaN is larger than any number, and of
/// several NaNs in a window the last is selected.
void max_pool2d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints kernel_size,
                Ints stride, Ints padding, Ints dilation, bool ceil_mode);
void max_pool3d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints kernel_size,
                Ints stride, Ints padding, Ints dilation, bool ceil_mode);
/// Computes the gradients of max_pool2d and adaptive_max_pool2d: adds each element of grad_output to the element of
/// grad_input at the position in `indices`.
void max_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         const View& indices);
void max_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         const View& indices);

/// If divisor_override is 0, the divisor is the number of elements of the window that lie within the padded input if
/// count_include_pad is true, and within the input otherwise.
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

/// Pools over windows that divide the input as evenly as possible. In a dimension of size `in`, window i of `out`
/// windows is [floor(i * in / out), ceil((i + 1) * in / out)).
void adaptive_avg_pool2d(KernelContext& ctx, const View& out, const View& input, Ints output_size);
void adaptive_avg_pool3d(KernelContext& ctx, const View& out, const View& input, Ints output_size);
void adaptive_avg_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output);
void adaptive_avg_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output);
void adaptive_max_pool2d(KernelContext& ctx, const View& out, const View& indices, const View& input,
                         Ints output_size);
void adaptive_max_pool3d(KernelContext& ctx, const View& out, const View& indices, const View& input,
                         Ints output_size);

}  // namespace rushlight::cpu
