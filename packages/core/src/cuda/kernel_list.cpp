#include "cuda/kernel_list.h"

#include <string_view>

#include "cuda/kernels.h"

#ifndef RUSHLIGHT_CUDA_OLDEST
#error "RUSHLIGHT_CUDA_OLDEST must be defined: the oldest compute capability for which kernels are compiled"
#endif

namespace rushlight::cuda {

const int kOldestCapability = RUSHLIGHT_CUDA_OLDEST;

namespace {

constexpr uint64_t kBool = uint64_t{1} << static_cast<int>(DType::Bool);

constexpr NamedKernel kOthers[] = {
    {"copy", copy_kernel},
    {"fill", fill_kernel},
    {"range", range_kernel},
    {"steps", steps_kernel},
    {"eye", eye_kernel},
    {"check", check_kernel},
    {"uniform_", uniform},
    {"normal_", normal},
    {"bernoulli_", bernoulli},
    {"_integers_", integers},
    {"bernoulli", bernoulli_of},
    {"multinomial", multinomial},
    {"_randperm", randperm},
    {"_standard_gamma", standard_gamma},
    {"_standard_log_gamma", standard_log_gamma},
    {"poisson", poisson},
    {"_binomial", binomial},
    {"_dropout", dropout},
    {"_dropout_mask", dropout_mask},
    {"exponential_", exponential},
    {"geometric_", geometric},
    {"cauchy_", cauchy},
    {"log_normal_", log_normal},
    {"mm", mm, kBool},
    {"bmm", bmm, kBool},
    {"addmm", addmm, kBool},
    {"baddbmm", baddbmm, kBool},
    {"mv", mv, kBool},
    {"linear", linear, kBool},
    {"dot", dot, kBool},
    {"convolution", convolution},
    {"convolution_backward", convolution_backward},
    {"_attention", attention},
    {"_attention_backward", attention_backward},
    {"_softmax", softmax},
    {"_log_softmax", log_softmax},
    {"_softmax_backward", softmax_backward},
    {"_log_softmax_backward", log_softmax_backward},
    {"nll_loss", nll_loss},
    {"nll_loss_backward", nll_loss_backward},
    {"_cross_entropy", cross_entropy},
    {"_cross_entropy_backward", cross_entropy_backward},
    {"layer_norm", layer_norm},
    {"_layer_norm_backward", layer_norm_backward},
    {"_rms_norm", rms_norm},
    {"_rms_norm_backward", rms_norm_backward},
    {"_lstm_layer", lstm_layer},
    {"_lstm_layer_backward", lstm_layer_backward},
    {"_lstm_gates", lstm_gates},
    {"_lstm_gates_backward", lstm_gates_backward},
    {"_gru_gates", gru_gates},
    {"_gru_gates_backward", gru_gates_backward},
    {"batch_norm", batch_norm},
    {"_batch_norm_backward", batch_norm_backward},
    {"_masked_batch_norm_backward", masked_batch_norm_backward},
    {"group_norm", group_norm},
    {"_group_norm_backward", group_norm_backward},
    {"max_pool2d", max_pool2d},
    {"max_pool2d_with_indices", max_pool2d},
    {"max_pool2d_backward", max_pool2d_backward},
    {"avg_pool2d", avg_pool2d},
    {"avg_pool2d_backward", avg_pool2d_backward},
    {"adaptive_avg_pool2d", adaptive_avg_pool2d},
    {"adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward},
    {"adaptive_max_pool2d", adaptive_max_pool2d},
    {"max_pool3d", max_pool3d},
    {"max_pool3d_with_indices", max_pool3d},
    {"max_pool3d_backward", max_pool3d_backward},
    {"avg_pool3d", avg_pool3d},
    {"avg_pool3d_backward", avg_pool3d_backward},
    {"adaptive_avg_pool3d", adaptive_avg_pool3d},
    {"adaptive_avg_pool3d_backward", adaptive_avg_pool3d_backward},
    {"adaptive_max_pool3d", adaptive_max_pool3d},
    {"index_select", index_select},
    {"embedding", embedding},
    {"_embedding_bag", embedding_bag},
    {"embedding_dense_backward", embedding_dense_backward},
    {"_index", index},
    {"take", take},
    {"scatter_add_", scatter_add},
    {"_scatter_reduce_", scatter_reduce},
    {"index_add_", index_add},
    {"index_copy_", index_copy},
    {"put_", put},
    {"_index_put_", index_put},
    {"index_backward", index_backward},
    {"gather", gather},
    {"scatter_", scatter},
    {"scatter_.value", scatter_value},
    {"index_fill_", index_fill},
    {"nonzero", nonzero},
    {"nonzero_static", nonzero_static},
    {"_masked_elements", masked_elements},
    {"masked_scatter_", masked_scatter},
    {"cumsum", cumsum},
    {"cumprod", cumprod},
    {"cummax", cummax},
    {"cummin", cummin},
    {"logcumsumexp", logcumsumexp},
    {"_recurrence", recurrence},
    {"sort", sort},
    {"topk", topk},
    {"kthvalue", kthvalue},
    {"median", median},
    {"median.dim", median_dim},
    {"nanmedian", nanmedian},
    {"nanmedian.dim", nanmedian_dim},
    {"mode", mode},
    {"_searchsorted", searchsorted},
    {"_isin_sorted", isin_sorted},
    {"_unique_elements", unique_elements},
    {"_unique_rows", unique_rows},
    {"_repeat_index", repeat_index},
    {"bincount", bincount},
    {"histc", histc},
    {"_histogram", histogram},
    {"_pad", pad},
    {"_pad_backward", pad_backward},
    {"_resample", resample},
    {"_resample_backward", resample_backward},
    {"_grid_sample", grid_sample},
    {"flip", flip},
    {"tril", tril},
    {"triu", triu},
    {"tril_indices", tril_indices},
    {"triu_indices", triu_indices},
    {"_ctc_loss", ctc_loss},
    {"_ctc_loss_backward", ctc_loss_backward},
    {"_sparse_mm", sparse_mm},
    {"_sampled_products", sampled_products},
    {"_fft_c2c", fft_c2c},
    {"_fft_r2c", fft_r2c},
    {"_fft_c2r", fft_c2r},
    {"_linalg_lu_factor", linalg_lu},
    {"_linalg_cholesky", linalg_cholesky},
    {"_pivots_to_order", pivots_to_order},
    {"_linalg_solve", linalg_solve},
    {"_linalg_solve_again", linalg_solve_again},
    {"_linalg_solve_triangular", linalg_solve_triangular},
    {"_linalg_inv", linalg_inv},
    {"_linalg_det", linalg_det},
    {"_linalg_slogdet", linalg_slogdet},
    {"_linalg_qr", linalg_qr},
    {"geqrf", geqrf},
    {"_householder_product", householder_product},
    {"_ormqr", ormqr},
    {"_linalg_ldl_factor", linalg_ldl},
    {"_linalg_ldl_solve", linalg_ldl_solve},
    {"_linalg_lstsq", linalg_lstsq},
    {"_linalg_eigh", linalg_eigh},
    {"_linalg_svd", linalg_svd},
    {"_linalg_eig", linalg_eig},
    {"_cdist_rows", cdist_rows},
    {"_cdist_gradient", cdist_gradient},
    {"hash_tensor.dim", hash_tensor},
    {"_fused_sgd_", fused_sgd},
    {"_fused_adam_", fused_adam},
    {"_fused_adamw_", fused_adamw},
    {"_rmsprop_step_", rmsprop_step},
    {"_adagrad_step_", adagrad_step},
    {"_adadelta_step_", adadelta_step},
    {"_adamax_step_", adamax_step},
    {"_nadam_step_", nadam_step},
    {"_radam_step_", radam_step},
    {"_rprop_step_", rprop_step},
    {"_asgd_step_", asgd_step},
};

/// Kernels that compute the number of results of operators of kind dynamic.
constexpr NamedKernel kCounts[] = {
    {"nonzero", nonzero_count},
    {"_masked_elements", masked_elements_count},
    {"_unique_elements", unique_elements_count},
    {"_unique_rows", unique_rows_count},
    {"_repeat_index", repeat_index_count},
    {"bincount", bincount_count},
};

template <class T>
const T* find(std::span<const T> list, std::string_view name) {
    for (const T& one : list)
        if (name == one.name) return &one;
    return nullptr;
}

}  // namespace

const std::span<const NamedKernel> other_kernels = kOthers;

BackendKernel find_kernel(const char* name, uint64_t schema_hash, KernelPart part) {
    const bool run = part == KernelPart::Run;
    const NamedKernel* found =
        run ? find(loop_kernels, name) : find(std::span<const NamedKernel>(kCounts), name);
    if (!found && run) found = find(other_kernels, name);
    if (!found) return nullptr;
    if (schema_hash != 0) {
        const NamedSchema* schema = find(schemas, name);
        if (!schema || schema->hash != schema_hash) return nullptr;
    }
    return found->kernel;
}

uint64_t lacked_by_kernel(const char* name) {
    const NamedKernel* found = find(other_kernels, name);
    return found ? found->lacks : 0;
}

}  // namespace rushlight::cuda
