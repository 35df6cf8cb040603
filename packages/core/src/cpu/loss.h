// Classification losses whose targets are int64 class indices. input has the shape (batch, classes, positions...)
// or (classes), and target the same shape without the class dimension. reduction is 0 (none), 1 (mean, weighted by
// the weights of the targets' classes) or 2 (sum). Targets equal to ignore_index contribute nothing; other targets
// out of range raise IndexError. float16 and bfloat16 are computed in float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes the negative log-probability of the target. total_weight, a tensor without dimensions that may be
/// undefined, receives the sum of the targets' weights, by which the sum of losses is divided to compute a mean.
void nll_loss(KernelContext& ctx, const View& out, const View& total_weight, const View& input,
              const View& target, const View& weight, int64_t reduction, int64_t ignore_index);
void nll_loss_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                       const View& target, const View& weight, const View& total_weight, int64_t reduction,
                       int64_t ignore_index);

/// Computes nll_loss of log_softmax without storing the log-probabilities. log_sum has the sizes of target and
/// receives the logarithm of the sum of exponentials at each position. log_sum and total_weight may be undefined.
/// Label smoothing follows Szegedy et al., "Rethinking the Inception architecture", 2016.
void cross_entropy(KernelContext& ctx, const View& out, const View& log_sum, const View& total_weight,
                   const View& input, const View& target, const View& weight, int64_t reduction,
                   int64_t ignore_index, double label_smoothing);
void cross_entropy_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                            const View& input, const View& target, const View& weight, const View& log_sum,
                            const View& total_weight, int64_t reduction, int64_t ignore_index,
                            double label_smoothing);

}  // namespace rushlight::cpu
