// Normalisations and their gradients. Statistics are computed in two passes, in the dtype of the computation.
// float16 and bfloat16 are computed in float32. Weights, biases and output statistics may be undefined.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Batch normalization (Ioffe and Szegedy, 2015) of input (batch, channels, ...). In training, each channel is
/// normalized by its own mean and variance, and the running statistics are updated in place, with the unbiased
/// variance. Otherwise each channel is normalized by its running statistics. The mean that was used is written to
/// save_mean, and the reciprocal of the standard deviation is written to save_invstd.
void batch_norm(KernelContext& ctx, const View& out, const View& save_mean, const View& save_invstd,
                const View& input, const View& weight, const View& bias, const View& running_mean,
                const View& running_var, bool training, double momentum, double eps);
void batch_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input,
                         const View& weight, const View& save_mean, const View& save_invstd, bool training);
/// Computes the gradients of a batch normalization that is followed by an activation function. `activation` is the
/// function's result. The gradient of the batch normalization's result is 0 where `activation` is at most `low` or at
/// least `high`, and equals `grad_output` elsewhere. A limit of NaN has no effect.
void masked_batch_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                                const View& grad_bias, const View& grad_output, const View& activation,
                                const View& input, const View& weight, const View& save_mean,
                                const View& save_invstd, double low, double high, bool training);

/// Layer normalization (Ba, Kiros and Hinton, 2016) over the last dimensions. mean and rstd have one element for
/// each row.
void layer_norm(KernelContext& ctx, const View& out, const View& mean, const View& rstd, const View& input,
                const View& weight, const View& bias, Ints normalized_shape, double eps);
void layer_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input, const View& mean,
                         const View& rstd, const View& weight, Ints normalized_shape);

/// Root mean square layer normalization (Zhang and Sennrich, 2019) over the last dimensions.
void rms_norm(KernelContext& ctx, const View& out, const View& rstd, const View& input, const View& weight,
              Ints normalized_shape, double eps);
void rms_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                       const View& grad_output, const View& input, const View& rstd, const View& weight,
                       Ints normalized_shape);

/// Group normalization (Wu and He, 2018) of input (batch, channels, ...). mean and rstd have the shape (batch,
/// groups).
void group_norm(KernelContext& ctx, const View& out, const View& mean, const View& rstd, const View& input,
                const View& weight, const View& bias, int64_t num_groups, double eps);
void group_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input, const View& mean,
                         const View& rstd, const View& weight, int64_t num_groups);

}  // namespace rushlight::cpu
