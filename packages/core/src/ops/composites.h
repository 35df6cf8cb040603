// Bodies of kind "composite": operators made of operators. They see tensors, never memory.
#pragma once

#include "rushlight/dispatch.h"
#include "rushlight/random.h"

namespace rushlight::composites {

// arithmetic.cpp
Tensor rsub(const Tensor& input, const TensorOrScalar& other, Scalar alpha);
Tensor div_rounded(const TensorOrScalar& input, const TensorOrScalar& other,
                   std::optional<std::string_view> rounding_mode);
Tensor positive(const Tensor& input);
Tensor clamp(const Tensor& input, const std::optional<TensorOrScalar>& min,
             const std::optional<TensorOrScalar>& max);

// activation.cpp
Tensor gelu(const Tensor& input, std::string_view approximate);
Tensor selu(const Tensor& input);
Tensor celu(const Tensor& input, Scalar alpha);
Tensor relu6(const Tensor& input);

// convolution.cpp
Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
              IntList dilation, int64_t groups);
Tensor conv1d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      std::string_view padding, IntList dilation, int64_t groups);
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                        IntList padding, IntList output_padding, int64_t groups, IntList dilation);
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
              IntList dilation, int64_t groups);
Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      std::string_view padding, IntList dilation, int64_t groups);
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                        IntList padding, IntList output_padding, int64_t groups, IntList dilation);
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
              IntList dilation, int64_t groups);
Tensor conv3d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      std::string_view padding, IntList dilation, int64_t groups);
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                        IntList padding, IntList output_padding, int64_t groups, IntList dilation);
Tensor convolution_grad_grad(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                             const Tensor& grad, const Tensor& input, const Tensor& weight, IntList stride,
                             IntList padding, IntList dilation, bool transposed, IntList output_padding,
                             int64_t groups, IntList wanted);

// softmax.cpp
Tensor softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype);
Tensor log_softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype);

// loss.cpp
Tensor cross_entropy_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing);
Tensor cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                              const Tensor& weight, const Tensor& log_sum, const Tensor& total_weight,
                              int64_t reduction, int64_t ignore_index, double label_smoothing);

// attention.cpp
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa);
std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& attn_mask, const Tensor& output,
                                                      const Tensor& log_sum, bool is_causal, double scale);

// elementwise_loss.cpp
Tensor mse_loss(const Tensor& input, const Tensor& target, int64_t reduction);
Tensor l1_loss(const Tensor& input, const Tensor& target, int64_t reduction);
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, int64_t reduction, double beta);
Tensor huber_loss(const Tensor& input, const Tensor& target, int64_t reduction, double delta);
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            int64_t reduction);
Tensor _binary_cross_entropy(const Tensor& input, const Tensor& target);
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, int64_t reduction);
Tensor kl_div(const Tensor& input, const Tensor& target, int64_t reduction, bool log_target);

// embedding.cpp
Tensor embedding_grad_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                           int64_t padding_idx, bool scale_grad_by_freq);

// pooling.cpp
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, IntList kernel_size, IntList stride,
                                                   IntList padding, IntList dilation, bool ceil_mode);
Tensor max_pool1d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                  bool ceil_mode);
Tensor avg_pool1d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                  bool count_include_pad);
Tensor adaptive_avg_pool1d(const Tensor& input, IntList output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& input, IntList output_size);

// normalization.cpp
Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                std::optional<double> eps);

// normalization_backward.cpp
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& weight, const Tensor& save_mean,
                                                       const Tensor& save_invstd, bool training, double eps,
                                                       IntList wanted);
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& mean, const Tensor& rstd,
                                                       const Tensor& weight, IntList normalized_shape,
                                                       double eps, IntList wanted);
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& rstd,
                                             const Tensor& weight, IntList normalized_shape, double eps,
                                             IntList wanted);
std::tuple<Tensor, Tensor, Tensor> group_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& mean, const Tensor& rstd,
                                                       const Tensor& weight, int64_t num_groups, double eps,
                                                       IntList wanted);

// products.cpp
Tensor matmul(const Tensor& input, const Tensor& other);
Tensor outer(const Tensor& input, const Tensor& vec2);
Tensor addmv(const Tensor& input, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha);

// reduction.cpp
Tensor max_other(const Tensor& input, const Tensor& other);
Tensor min_other(const Tensor& input, const Tensor& other);
Tensor var_unbiased_dim(const Tensor& input, std::optional<IntList> dim, bool unbiased, bool keepdim);
Tensor var_unbiased(const Tensor& input, bool unbiased);
std::tuple<Tensor, Tensor> var_mean(const Tensor& input, std::optional<IntList> dim, Scalar correction,
                                    bool keepdim);
Tensor std_unbiased_dim(const Tensor& input, std::optional<IntList> dim, bool unbiased, bool keepdim);
Tensor std_unbiased(const Tensor& input, bool unbiased);
std::tuple<Tensor, Tensor> std_mean(const Tensor& input, std::optional<IntList> dim, Scalar correction,
                                    bool keepdim);
Tensor norm(const Tensor& input, Scalar p, std::optional<IntList> dim, bool keepdim,
            std::optional<DType> dtype);
Tensor norm_name(const Tensor& input, std::string_view p, std::optional<IntList> dim, bool keepdim,
                 std::optional<DType> dtype);
Tensor logsumexp(const Tensor& input, IntList dim, bool keepdim);

// shape.cpp
Tensor reshape(const Tensor& input, IntList shape);
Tensor reshape_as(const Tensor& input, const Tensor& other);
Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim);
Tensor ravel(const Tensor& input);
Tensor unflatten(const Tensor& input, int64_t dim, IntList sizes);
Tensor contiguous(const Tensor& input, std::string_view memory_format);
std::vector<Tensor> split(const Tensor& input, int64_t split_size, int64_t dim);
std::vector<Tensor> split_sizes(const Tensor& input, IntList split_size, int64_t dim);
std::vector<Tensor> chunk(const Tensor& input, int64_t chunks, int64_t dim);
std::vector<Tensor> unbind(const Tensor& input, int64_t dim);

// power.cpp
Tensor prod_backward(const Tensor& grad, const Tensor& input, const Tensor& result,
                     std::optional<int64_t> dim, bool keepdim);
Tensor pow_backward_input(const Tensor& grad, const TensorOrScalar& input, const TensorOrScalar& exponent);
Tensor pow_backward_exponent(const Tensor& grad, const TensorOrScalar& input, const TensorOrScalar& exponent,
                             const Tensor& result);

// indexing.cpp
Tensor cat(TensorList tensors, int64_t dim);
Tensor stack(TensorList tensors, int64_t dim);
Tensor index_put(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate);
Tensor index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha);
Tensor scatter(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter_value(const Tensor& input, int64_t dim, const Tensor& index, Scalar value);
Tensor scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src);
Tensor masked_fill(const Tensor& input, const Tensor& mask, const TensorOrScalar& value);
Tensor masked_select(const Tensor& input, const Tensor& mask);

// random.cpp
Tensor bernoulli__tensor(const Tensor& input, const Tensor& p, Generator* generator);
Tensor bernoulli_p(const Tensor& input, double p, Generator* generator);
Tensor random_(const Tensor& input, Generator* generator);
Tensor random__to(const Tensor& input, int64_t to, Generator* generator);
Tensor random__from(const Tensor& input, int64_t from, std::optional<int64_t> to, Generator* generator);
Tensor rand(IntList size, Generator* generator, std::optional<DType> dtype, std::optional<Device> device,
            bool requires_grad);
Tensor rand_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad, std::optional<std::string_view> memory_format, Generator* generator);
Tensor randn(IntList size, Generator* generator, std::optional<DType> dtype, std::optional<Device> device,
             bool requires_grad);
Tensor randn_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                  bool requires_grad, std::optional<std::string_view> memory_format, Generator* generator);
Tensor randint_low(int64_t low, int64_t high, IntList size, Generator* generator, std::optional<DType> dtype,
                   std::optional<Device> device, bool requires_grad);
Tensor randint(int64_t high, IntList size, Generator* generator, std::optional<DType> dtype,
               std::optional<Device> device, bool requires_grad);
Tensor randint_like_low(const Tensor& input, int64_t low, int64_t high, std::optional<DType> dtype,
                        std::optional<Device> device, bool requires_grad,
                        std::optional<std::string_view> memory_format);
Tensor randint_like(const Tensor& input, int64_t high, std::optional<DType> dtype,
                    std::optional<Device> device, bool requires_grad,
                    std::optional<std::string_view> memory_format);
Tensor randperm(int64_t n, Generator* generator, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad);
Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator);
Tensor normal_number_std(const Tensor& mean, double std, Generator* generator);
Tensor normal_number_mean(double mean, const Tensor& std, Generator* generator);
Tensor normal_numbers(double mean, double std, IntList size, Generator* generator, std::optional<DType> dtype,
                      std::optional<Device> device, bool requires_grad);
Tensor dropout(const Tensor& input, double p, bool train);

// conversion.cpp
Tensor to(const Tensor& input, std::optional<Device> device, std::optional<DType> dtype, bool, bool copy,
          std::optional<std::string_view> memory_format);
Tensor to_dtype(const Tensor& input, DType dtype, bool, bool copy,
                std::optional<std::string_view> memory_format);
Tensor to_other(const Tensor& input, const Tensor& other, bool, bool copy,
                std::optional<std::string_view> memory_format);
Tensor type_as(const Tensor& input, const Tensor& other);
Tensor cpu(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor cuda(const Tensor& input, std::optional<Device> device, bool,
            std::optional<std::string_view> memory_format);
bool equal(const Tensor& input, const Tensor& other);
bool allclose(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan);
std::vector<Tensor> broadcast_tensors(TensorList tensors);
Tensor float_(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor double_(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor half(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor bfloat16(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor long_(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor int_(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor short_(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor char_(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor byte(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor bool_(const Tensor& input, std::optional<std::string_view> memory_format);

// order.cpp
Tensor argsort(const Tensor& input, int64_t dim, bool descending, bool stable);
Tensor roll(const Tensor& input, IntList shifts, IntList dims);
Tensor repeat(const Tensor& input, IntList repeats);
Tensor tile(const Tensor& input, IntList dims);
Tensor repeat_interleave(const Tensor& input, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t>);
Tensor repeat_interleave_tensor(const Tensor& input, const Tensor& repeats, std::optional<int64_t> dim,
                                std::optional<int64_t> output_size);

}  // namespace rushlight::composites
