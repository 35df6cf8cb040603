// The kernels that are not loops of functors, listed by file.
#pragma once

#include "rushlight/backend.h"

namespace rushlight::cuda {

// kernels/create.cu: copies of elements, and elements computed from numbers.
BackendStatus copy_kernel(const KernelArgs* args);
BackendStatus fill_kernel(const KernelArgs* args);
BackendStatus range_kernel(const KernelArgs* args);
BackendStatus steps_kernel(const KernelArgs* args);
BackendStatus eye_kernel(const KernelArgs* args);
/// Writes a number to every element of `out`.
void queue_fill(const View& out, const Param& value, const KernelArgs& args);

// kernels/check.cu
BackendStatus check_kernel(const KernelArgs* args);

// kernels/random.cu
BackendStatus uniform(const KernelArgs* args);
BackendStatus normal(const KernelArgs* args);
BackendStatus bernoulli(const KernelArgs* args);
BackendStatus integers(const KernelArgs* args);
BackendStatus dropout(const KernelArgs* args);
BackendStatus dropout_mask(const KernelArgs* args);
BackendStatus exponential(const KernelArgs* args);
BackendStatus geometric(const KernelArgs* args);
BackendStatus cauchy(const KernelArgs* args);
BackendStatus log_normal(const KernelArgs* args);

// matmul.cpp
BackendStatus mm(const KernelArgs* args);
BackendStatus bmm(const KernelArgs* args);
BackendStatus addmm(const KernelArgs* args);
BackendStatus baddbmm(const KernelArgs* args);
BackendStatus mv(const KernelArgs* args);
BackendStatus linear(const KernelArgs* args);
BackendStatus dot(const KernelArgs* args);

// kernels/convolution.cu
BackendStatus convolution(const KernelArgs* args);
BackendStatus convolution_backward(const KernelArgs* args);

// kernels/attention.cu
BackendStatus attention(const KernelArgs* args);
BackendStatus attention_backward(const KernelArgs* args);

// kernels/softmax.cu
BackendStatus softmax(const KernelArgs* args);
BackendStatus log_softmax(const KernelArgs* args);
BackendStatus softmax_backward(const KernelArgs* args);
BackendStatus log_softmax_backward(const KernelArgs* args);

// kernels/loss.cu
BackendStatus nll_loss(const KernelArgs* args);
BackendStatus nll_loss_backward(const KernelArgs* args);
BackendStatus cross_entropy(const KernelArgs* args);
BackendStatus cross_entropy_backward(const KernelArgs* args);

// kernels/row_norm.cu
BackendStatus layer_norm(const KernelArgs* args);
BackendStatus layer_norm_backward(const KernelArgs* args);
BackendStatus rms_norm(const KernelArgs* args);
BackendStatus rms_norm_backward(const KernelArgs* args);

// kernels/recurrent.cu
BackendStatus lstm_layer(const KernelArgs* args);
BackendStatus lstm_layer_backward(const KernelArgs* args);
BackendStatus lstm_gates(const KernelArgs* args);
BackendStatus lstm_gates_backward(const KernelArgs* args);
BackendStatus gru_gates(const KernelArgs* args);
BackendStatus gru_gates_backward(const KernelArgs* args);

// kernels/channel_norm.cu
BackendStatus batch_norm(const KernelArgs* args);
BackendStatus batch_norm_backward(const KernelArgs* args);
BackendStatus masked_batch_norm_backward(const KernelArgs* args);
BackendStatus group_norm(const KernelArgs* args);
BackendStatus group_norm_backward(const KernelArgs* args);

// kernels/pool.cu
BackendStatus max_pool2d(const KernelArgs* args);
BackendStatus max_pool2d_backward(const KernelArgs* args);
BackendStatus avg_pool2d(const KernelArgs* args);
BackendStatus avg_pool2d_backward(const KernelArgs* args);
BackendStatus adaptive_avg_pool2d(const KernelArgs* args);
BackendStatus adaptive_avg_pool2d_backward(const KernelArgs* args);
BackendStatus adaptive_max_pool2d(const KernelArgs* args);
BackendStatus max_pool3d(const KernelArgs* args);
BackendStatus max_pool3d_backward(const KernelArgs* args);
BackendStatus avg_pool3d(const KernelArgs* args);
BackendStatus avg_pool3d_backward(const KernelArgs* args);
BackendStatus adaptive_avg_pool3d(const KernelArgs* args);
BackendStatus adaptive_avg_pool3d_backward(const KernelArgs* args);
BackendStatus adaptive_max_pool3d(const KernelArgs* args);

// kernels/rows.cu
BackendStatus index_select(const KernelArgs* args);
BackendStatus embedding(const KernelArgs* args);
BackendStatus embedding_bag(const KernelArgs* args);

// kernels/indexing.cu
BackendStatus index(const KernelArgs* args);
BackendStatus take(const KernelArgs* args);

// kernels/meeting.cu
BackendStatus scatter_add(const KernelArgs* args);
BackendStatus scatter_reduce(const KernelArgs* args);
BackendStatus index_add(const KernelArgs* args);
BackendStatus index_copy(const KernelArgs* args);
BackendStatus put(const KernelArgs* args);
BackendStatus index_put(const KernelArgs* args);
BackendStatus index_backward(const KernelArgs* args);
BackendStatus embedding_dense_backward(const KernelArgs* args);

// kernels/positions.cu
BackendStatus gather(const KernelArgs* args);
BackendStatus scatter(const KernelArgs* args);
BackendStatus scatter_value(const KernelArgs* args);
BackendStatus index_fill(const KernelArgs* args);
BackendStatus flip(const KernelArgs* args);
BackendStatus tril(const KernelArgs* args);
BackendStatus triu(const KernelArgs* args);
BackendStatus tril_indices(const KernelArgs* args);
BackendStatus triu_indices(const KernelArgs* args);

// kernels/masking.cu
BackendStatus nonzero_count(const KernelArgs* args);
BackendStatus nonzero(const KernelArgs* args);
BackendStatus nonzero_static(const KernelArgs* args);
BackendStatus masked_elements_count(const KernelArgs* args);
BackendStatus masked_elements(const KernelArgs* args);
BackendStatus masked_scatter(const KernelArgs* args);

// kernels/scan.cu
BackendStatus cumsum(const KernelArgs* args);
BackendStatus cumprod(const KernelArgs* args);
BackendStatus cummax(const KernelArgs* args);
BackendStatus cummin(const KernelArgs* args);
BackendStatus logcumsumexp(const KernelArgs* args);
BackendStatus recurrence(const KernelArgs* args);

// kernels/order.cu
BackendStatus sort(const KernelArgs* args);
BackendStatus topk(const KernelArgs* args);
BackendStatus kthvalue(const KernelArgs* args);
BackendStatus median(const KernelArgs* args);
BackendStatus median_dim(const KernelArgs* args);
BackendStatus nanmedian(const KernelArgs* args);
BackendStatus nanmedian_dim(const KernelArgs* args);
BackendStatus mode(const KernelArgs* args);

// kernels/searching.cu
BackendStatus searchsorted(const KernelArgs* args);
BackendStatus isin_sorted(const KernelArgs* args);
BackendStatus unique_elements_count(const KernelArgs* args);
BackendStatus unique_elements(const KernelArgs* args);
BackendStatus unique_rows_count(const KernelArgs* args);
BackendStatus unique_rows(const KernelArgs* args);
BackendStatus repeat_index_count(const KernelArgs* args);
BackendStatus repeat_index(const KernelArgs* args);

// kernels/histogram.cu
BackendStatus bincount_count(const KernelArgs* args);
BackendStatus bincount(const KernelArgs* args);
BackendStatus histc(const KernelArgs* args);
BackendStatus histogram(const KernelArgs* args);

// kernels/padding.cu
BackendStatus pad(const KernelArgs* args);
BackendStatus pad_backward(const KernelArgs* args);

// kernels/resample.cu
BackendStatus resample(const KernelArgs* args);
BackendStatus resample_backward(const KernelArgs* args);
BackendStatus grid_sample(const KernelArgs* args);

// kernels/choice.cu
BackendStatus bernoulli_of(const KernelArgs* args);
BackendStatus multinomial(const KernelArgs* args);
BackendStatus randperm(const KernelArgs* args);

// kernels/sampling.cu
BackendStatus standard_gamma(const KernelArgs* args);
BackendStatus standard_log_gamma(const KernelArgs* args);
BackendStatus poisson(const KernelArgs* args);
BackendStatus binomial(const KernelArgs* args);

// kernels/ctc.cu
BackendStatus ctc_loss(const KernelArgs* args);
BackendStatus ctc_loss_backward(const KernelArgs* args);

// kernels/sparse.cu
BackendStatus sparse_mm(const KernelArgs* args);
BackendStatus sampled_products(const KernelArgs* args);

// kernels/fft.cu
BackendStatus fft_c2c(const KernelArgs* args);
BackendStatus fft_r2c(const KernelArgs* args);
BackendStatus fft_c2r(const KernelArgs* args);

// kernels/elimination.cu
BackendStatus linalg_lu(const KernelArgs* args);
BackendStatus linalg_cholesky(const KernelArgs* args);
BackendStatus pivots_to_order(const KernelArgs* args);
BackendStatus linalg_solve(const KernelArgs* args);
BackendStatus linalg_solve_again(const KernelArgs* args);
BackendStatus linalg_solve_triangular(const KernelArgs* args);
BackendStatus linalg_inv(const KernelArgs* args);
BackendStatus linalg_det(const KernelArgs* args);
BackendStatus linalg_slogdet(const KernelArgs* args);

// kernels/orthogonal.cu
BackendStatus linalg_qr(const KernelArgs* args);
BackendStatus geqrf(const KernelArgs* args);
BackendStatus householder_product(const KernelArgs* args);
BackendStatus ormqr(const KernelArgs* args);

// kernels/ldl.cu
BackendStatus linalg_ldl(const KernelArgs* args);
BackendStatus linalg_ldl_solve(const KernelArgs* args);

// kernels/least_squares.cu
BackendStatus linalg_lstsq(const KernelArgs* args);

// kernels/eigh.cu
BackendStatus linalg_eigh(const KernelArgs* args);

// kernels/eig.cu
BackendStatus linalg_eig(const KernelArgs* args);

// kernels/svd.cu
BackendStatus linalg_svd(const KernelArgs* args);

// kernels/metric.cu
BackendStatus cdist_rows(const KernelArgs* args);
BackendStatus cdist_gradient(const KernelArgs* args);
BackendStatus hash_tensor(const KernelArgs* args);

// kernels/optimizer.cu
BackendStatus fused_sgd(const KernelArgs* args);
BackendStatus fused_adam(const KernelArgs* args);
BackendStatus fused_adamw(const KernelArgs* args);
BackendStatus rmsprop_step(const KernelArgs* args);
BackendStatus adagrad_step(const KernelArgs* args);
BackendStatus adadelta_step(const KernelArgs* args);
BackendStatus adamax_step(const KernelArgs* args);
BackendStatus nadam_step(const KernelArgs* args);
BackendStatus radam_step(const KernelArgs* args);
BackendStatus rprop_step(const KernelArgs* args);
BackendStatus asgd_step(const KernelArgs* args);

}  // namespace rushlight::cuda
