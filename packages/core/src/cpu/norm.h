// Normalisations and their gradients. Statistics are computed in two passes, in the dtype of the computation; float16 and
// bfloat16 go through float32. Weights, biases and the statistics that are outputs may be undefined.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Ioffe and Szegedy, "Batch normalization", 2015. input (batch, channels, ...). In training the channels' own statistics
/// are used, and mixed into the running ones in place (with the unbiased variance); else the running ones are used. Those used
/// are saved.
void batch_norm(KernelContext& ctx, const View& out, const View& save_mean, const View& save_invstd,
                const View& input, const View& weight, const View& bias, const View& running_mean,
                const View& running_var, bool training, double momentum, double eps);
void batch_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input,
                         const View& weight, const View& save_mean, const View& save_invstd, bool training);
/// The same for a gradient that counts as 0 where an activation's result is at most `low` or at least `high`; NaN is not a limit.
void masked_batch_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                                const View& grad_bias, const View& grad_output, const View& activation,
                                const View& input, const View& weight, const View& save_mean,
                                const View& save_invstd, double low, double high, bool training);

/// Ba, Kiros and Hinton, "Layer normalization", 2016, over the last dimensions. mean, rstd: one number for each row.
void layer_norm(KernelContext& ctx, const View& out, const View& mean, const View& rstd, const View& input,
                const View& weight, const View& bias, Ints normalized_shape, double eps);
void layer_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input, const View& mean,
                         const View& rstd, const View& weight, Ints normalized_shape);

/// Zhang and Sennrich, "Root mean square layer normalization", 2019, over the last dimensions.
void rms_norm(KernelContext& ctx, const View& out, const View& rstd, const View& input, const View& weight,
              Ints normalized_shape, double eps);
void rms_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                       const View& grad_output, const View& input, const View& rstd, const View& weight,
                       Ints normalized_shape);

/// Wu and He, "Group normalization", 2018. input (batch, channels, ...); mean, rstd (batch, groups).
void group_norm(KernelContext& ctx, const View& out, const View& mean, const View& rstd, const View& input,
                const View& weight, const View& bias, int64_t num_groups, double eps);
void group_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input, const View& mean,
                         const View& rstd, const View& weight, int64_t num_groups);

}  // namespace rushlight::cpu
