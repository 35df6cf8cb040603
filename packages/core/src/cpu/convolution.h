// Convolutions and transposed convolutions in one to three dimensions, and their gradients. float32 is computed by
// oneDNN if it is available and worth its setup. float64 and small problems are computed as matrix products, and
// float16 and bfloat16 are computed in float32. Weights have the shape (out, in / groups, kernel...), and weights
// of transposed convolutions (in, out / groups, kernel...).
//
// oneDNN's gradients of the weights are sums over the batch whose rounding depends on the number of threads. No
// other result depends on it.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `out` has the shape (batch, channels, spatial...). `stride`, `padding` and `dilation` have one entry, or one for
/// each spatial dimension. `output_padding` is not used, because the sizes of `out` already include it.
void convolution(KernelContext& ctx, const View& out, const View& input, const View& weight, const View& bias,
                 Ints stride, Ints padding, Ints dilation, bool transposed, Ints output_padding,
                 int64_t groups);

/// Computes each gradient whose view is defined. A gradient has the sizes of its operand.
void convolution_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                          const View& grad_bias, const View& grad_output, const View& input,
                          const View& weight, Ints stride, Ints padding, Ints dilation, bool transposed,
                          Ints output_padding, int64_t groups);

}  // namespace rushlight::cpu
