// Losses of classification with classes as int64 targets. input (batch, classes, positions...) or (classes);
// target without the class dimension. reduction: 0 none, 1 mean (weighted by the targets' weights), 2 sum.
// Targets equal to ignore_index do not count; other targets out of range raise IndexError. float16 and
// bfloat16 go through float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The negative of the target's log-probability. total_weight () is the sum that a mean was divided by; may
/// be undefined.
void nll_loss(KernelContext& ctx, const View& out, const View& total_weight, const View& input,
              const View& target, const View& weight, int64_t reduction, int64_t ignore_index);
void nll_loss_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                       const View& target, const View& weight, const View& total_weight, int64_t reduction,
                       int64_t ignore_index);

/// nll_loss of log_softmax without the array of log-probabilities in between. log_sum, of target's sizes, is
/// the logarithm of the sum of exponentials at each position; it and total_weight may be undefined. Label
/// smoothing after Szegedy et al., "Rethinking the Inception architecture", 2016.
void cross_entropy(KernelContext& ctx, const View& out, const View& log_sum, const View& total_weight,
                   const View& input, const View& target, const View& weight, int64_t reduction,
                   int64_t ignore_index, double label_smoothing);
void cross_entropy_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                            const View& input, const View& target, const View& weight, const View& log_sum,
                            const View& total_weight, int64_t reduction, int64_t ignore_index,
                            double label_smoothing);

}  // namespace rushlight::cpu
