// Softmax and its logarithm over one dimension, and their gradients. float16 and bfloat16 are computed in float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

void softmax(KernelContext& ctx, const View& out, const View& input, int64_t dim);
void log_softmax(KernelContext& ctx, const View& out, const View& input, int64_t dim);

/// `output` is the result of the forward pass.
void softmax_backward(KernelContext& ctx, const View& grad_input, const View& grad_output, const View& output,
                      int64_t dim);
void log_softmax_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                          const View& output, int64_t dim);

}  // namespace rushlight::cpu
