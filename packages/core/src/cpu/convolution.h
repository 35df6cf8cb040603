// Convolutions in one to three dimensions, transposed ones too, and their gradients. float32 is computed by oneDNN if
// it is available and worth its setup; float64 and small problems are computed as matrix products. float16 and bfloat16
// go through float32. Weights are (out, in / groups, kernel...), of transposed convolutions (in, out / groups,
// kernel...).
//
// Sums over the batch in oneDNN's gradients of the weights depend on the number of threads; all else here
// does not.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// out (batch, channels, spatial...); stride, padding, dilation have one entry or one for each spatial
/// dimension. output_padding is not needed beyond out's sizes.
void convolution(KernelContext& ctx, const View& out, const View& input, const View& weight, const View& bias,
                 Ints stride, Ints padding, Ints dilation, bool transposed, Ints output_padding,
                 int64_t groups);

/// Computes the gradients that are defined, each of its operand's sizes.
void convolution_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                          const View& grad_bias, const View& grad_output, const View& input,
                          const View& weight, Ints stride, Ints padding, Ints dilation, bool transposed,
                          Ints output_padding, int64_t groups);

}  // namespace rushlight::cpu
