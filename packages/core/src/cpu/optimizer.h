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

/// Adam (Kingma and Ba, 2015), with `amsgrad` after Reddi et al., 2018. The tensors in `steps` are 0-d, of dtype
/// float32 or float64, and contain the numbers of the steps, counted from 1.
void fused_adam(KernelContext& ctx, Views params, Views grads, Views exp_avgs, Views exp_avg_sqs,
                Views max_exp_avg_sqs, Views steps, const View& grad_scale, const View& found_inf, double lr,
                double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize);

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
void fused_adamw(KernelContext& ctx, Views params, Views grads, Views exp_avgs, Views exp_avg_sqs,
                 Views max_exp_avg_sqs, Views steps, const View& grad_scale, const View& found_inf, double lr,
                 double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize);

// The optimizers below count their own steps: Note [Steps that count] in ops/functors/optimizer.h. Their formulas are
// there, too.

void rmsprop_step(KernelContext& ctx, Views params, Views grads, Views squares, Views means, Views buffers,
                  Views counts, double lr, double alpha, double eps, double weight_decay, double momentum,
                  bool centered, bool maximize);
void adagrad_step(KernelContext& ctx, Views params, Views grads, Views sums, Views counts, double lr,
                  double lr_decay, double eps, double weight_decay, bool maximize);
void adadelta_step(KernelContext& ctx, Views params, Views grads, Views squares, Views changes, Views counts,
                   double lr, double rho, double eps, double weight_decay, bool maximize);
void adamax_step(KernelContext& ctx, Views params, Views grads, Views means, Views largest, Views counts,
                 double lr, double beta1, double beta2, double eps, double weight_decay, bool maximize);
void nadam_step(KernelContext& ctx, Views params, Views grads, Views means, Views squares, Views products,
                Views counts, double lr, double beta1, double beta2, double eps, double weight_decay,
                double momentum_decay, bool decoupled, bool maximize);
void radam_step(KernelContext& ctx, Views params, Views grads, Views means, Views squares, Views counts,
                double lr, double beta1, double beta2, double eps, double weight_decay, bool decoupled,
                bool maximize);
void rprop_step(KernelContext& ctx, Views params, Views grads, Views prevs, Views lengths, Views counts,
                double etaminus, double etaplus, double shortest, double longest, bool maximize);
void asgd_step(KernelContext& ctx, Views params, Views grads, Views averages, Views shares, Views rates,
               Views counts, double lr, double lambd, double alpha, double t0, double weight_decay,
               bool maximize);

}  // namespace rushlight::cpu
