// Rules of kind "custom": they check an operator's arguments and say what its outputs are. No memory is touched.
#pragma once

#include "ops/launch.h"

namespace rushlight::rules {

/// RuntimeError when two arguments differ in dtype.
inline void same_dtype(const char* op, const char* first, const Tensor& a, const char* second,
                       const Tensor& b) {
    RL_CHECK(a.dtype() == b.dtype(), throw_runtime, "%s(%s, %s): the dtypes %s and %s differ", op, first,
             second, name(a.dtype()), name(b.dtype()));
}
/// NotImplementedError for a dtype that is no floating one.
inline void floating_only(const char* op, const Tensor& t) {
    RL_CHECK(is_floating(t.dtype()), throw_not_implemented,
             "%s: not defined for dtype %s\nhint: convert the input to a floating dtype first", op,
             name(t.dtype()));
}

// products.cpp
Outputs mm(const Tensor& input, const Tensor& mat2);
Outputs addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha);
Outputs bmm(const Tensor& input, const Tensor& mat2);
Outputs baddbmm(const Tensor& input, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha);
Outputs mv(const Tensor& input, const Tensor& vec);
Outputs dot(const Tensor& input, const Tensor& tensor);
Outputs linear(const Tensor& input, const Tensor& weight, const Tensor& bias);

// convolution.cpp
Outputs convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                    IntList padding, IntList dilation, bool transposed, IntList output_padding,
                    int64_t groups);
Outputs convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntList, IntList,
                             IntList, bool transposed, IntList, int64_t groups, IntList wanted);

// pooling.cpp
Outputs max_pool2d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                   IntList dilation, bool ceil_mode);
Outputs max_pool2d_with_indices(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                                IntList dilation, bool ceil_mode);
Outputs max_pool2d_backward(const Tensor& grad, const Tensor&, IntList input_sizes);
Outputs avg_pool2d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                   bool, std::optional<int64_t> divisor_override);
Outputs avg_pool2d_backward(const Tensor& grad, IntList input_sizes, IntList, IntList, IntList, bool, bool,
                            std::optional<int64_t>);
Outputs adaptive_avg_pool2d(const Tensor& input, IntList output_size);
Outputs adaptive_avg_pool2d_backward(const Tensor& grad, IntList input_sizes);
Outputs adaptive_max_pool2d(const Tensor& input, IntList output_size);
Outputs max_pool3d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                   IntList dilation, bool ceil_mode);
Outputs max_pool3d_with_indices(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                                IntList dilation, bool ceil_mode);
Outputs max_pool3d_backward(const Tensor& grad, const Tensor&, IntList input_sizes);
Outputs avg_pool3d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                   bool, std::optional<int64_t> divisor_override);
Outputs avg_pool3d_backward(const Tensor& grad, IntList input_sizes, IntList, IntList, IntList, bool, bool,
                            std::optional<int64_t>);
Outputs adaptive_avg_pool3d(const Tensor& input, IntList output_size);
Outputs adaptive_avg_pool3d_backward(const Tensor& grad, IntList input_sizes);
Outputs adaptive_max_pool3d(const Tensor& input, IntList output_size);

// normalization.cpp
Outputs batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                   const Tensor& running_var, bool training, double, double, bool);
Outputs batch_norm_backward(const Tensor&, const Tensor& input, const Tensor& weight, const Tensor&,
                            const Tensor&, bool, IntList wanted);
Outputs layer_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, const Tensor& bias,
                   double, bool);
Outputs layer_norm_backward(const Tensor&, const Tensor& input, const Tensor&, const Tensor&,
                            const Tensor& weight, IntList normalized_shape, IntList wanted);
Outputs _rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, double);
Outputs rms_norm_backward(const Tensor&, const Tensor& input, const Tensor&, const Tensor& weight,
                          IntList normalized_shape, IntList wanted);
Outputs group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double,
                   bool);
Outputs group_norm_backward(const Tensor&, const Tensor& input, const Tensor&, const Tensor&,
                            const Tensor& weight, int64_t, IntList wanted);

// softmax.cpp
Outputs softmax(const Tensor& input, int64_t dim);
Outputs log_softmax(const Tensor& input, int64_t dim);
Outputs softmax_backward(const Tensor& grad, const Tensor& result, int64_t dim);
Outputs log_softmax_backward(const Tensor& grad, const Tensor& result, int64_t dim);

// loss.cpp
Outputs nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                 int64_t ignore_index);
Outputs nll_loss_backward(const Tensor& grad, const Tensor& target, const Tensor& weight,
                          const Tensor& total_weight, IntList input_sizes, int64_t reduction,
                          int64_t ignore_index);
Outputs cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                      int64_t ignore_index, double label_smoothing);
Outputs cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                               const Tensor& weight, const Tensor& log_sum, const Tensor& total_weight,
                               int64_t reduction, int64_t ignore_index, double label_smoothing);

// attention.cpp
Outputs attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask, bool,
                  double);
Outputs attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                           const Tensor& attn_mask, const Tensor& output, const Tensor&, bool, double);

// embedding.cpp
Outputs embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool sparse);
Outputs embedding_dense_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t,
                                 bool);

// optimizer.cpp
Outputs fused_sgd(TensorList params, TensorList grads, TensorList momentum_buffers, double weight_decay,
                  double momentum, double lr, double dampening, bool nesterov, bool maximize,
                  bool is_first_step, const Tensor& grad_scale, const Tensor& found_inf);
Outputs fused_adam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                   TensorList max_exp_avg_sqs, TensorList steps, double lr, double beta1, double beta2,
                   double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
                   const Tensor& found_inf);
Outputs fused_adamw(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                    TensorList max_exp_avg_sqs, TensorList steps, double lr, double beta1, double beta2,
                    double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
                    const Tensor& found_inf);

// random.cpp
Outputs uniform_(const Tensor& input, double from, double to, Generator*);
Outputs normal_(const Tensor& input, double, double std, Generator*);
Outputs exponential_(const Tensor& input, double lambd, Generator*);
Outputs bernoulli_(const Tensor&, double p, Generator*);
Outputs _integers_(const Tensor&, int64_t, int64_t, Generator*);
Outputs bernoulli(const Tensor& input, Generator*);
Outputs multinomial(const Tensor& input, int64_t num_samples, bool replacement, Generator*);
Outputs _randperm(int64_t n, std::optional<Device> device, Generator*);
Outputs _dropout(const Tensor& input, double);

}  // namespace rushlight::rules
