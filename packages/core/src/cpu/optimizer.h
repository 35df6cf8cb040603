// Fused optimizer steps over lists of tensors. Each element is read and written once. Entry i of every list belongs
// to parameter i, and a list may be empty if its values are not used. float16 and bfloat16 are computed in float32
// and stored in their own dtype.
//
// If grad_scale (no dimensions) is defined, the gradients are divided by it and written back. If found_inf (no
// dimensions) is defined and not zero, nothing is changed.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Stochastic gradient descent with momentum (Sutskever et al., "On the importance of initialization and momentum
/// in deep learning", 2013). On the first step, the momentum buffer is set to the gradient.
void fused_sgd(KernelContext& ctx, Views params, Views grads, Views momentum_buffers, const View& grad_scale,
               const View& found_inf, double weight_decay, double momentum, double lr, double dampening,
               bool nesterov, bool maximize, bool is_first_step);

/// Adam (Kingma and Ba, 2015), with `amsgrad` after Reddi et al., 2018. `steps` are float32 or float64 tensors
/// without dimensions, which count from 1.
void fused_adam(KernelContext& ctx, Views params, Views grads, Views exp_avgs, Views exp_avg_sqs,
                Views max_exp_avg_sqs, Views steps, const View& grad_scale, const View& found_inf, double lr,
                double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize);

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
void fused_adamw(KernelContext& ctx, Views params, Views grads, Views exp_avgs, Views exp_avg_sqs,
                 Views max_exp_avg_sqs, Views steps, const View& grad_scale, const View& found_inf, double lr,
                 double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize);

}  // namespace rushlight::cpu
