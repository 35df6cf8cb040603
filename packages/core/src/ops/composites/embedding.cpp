#include "rushlight/ops/embedding.h"
#include "bodies/embedding.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/embedding_dense_backward.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/slice.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"
#include "sparse/parts.h"

namespace rushlight::composites {

Tensor embedding_grad_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                           int64_t padding_idx, bool scale_grad_by_freq) {
    Tensor rows = ops::embedding(grad, indices, -1, false, false);
    if (scale_grad_by_freq) {
        // The gradient of an embedding with respect to its table, for an output gradient of ones, counts the uses of each
        // row.
        Tensor one =
            ops::ones_like(ops::slice(rows, -1, 0, 1, 1), std::nullopt, std::nullopt, false, std::nullopt);
        Tensor counts = ops::embedding_dense_backward(one, indices, num_weights, -1, false);
        rows = ops::div(rows, ops::embedding(counts, indices, -1, false, false));
    }
    if (padding_idx < 0) return rows;
    return ops::where(ops::unsqueeze(ops::eq(indices, Scalar(padding_idx)), -1), 0, rows);
}

Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx, bool scale_grad_by_freq) {
    RL_CHECK(
        !scale_grad_by_freq, throw_runtime,
        "embedding_backward(scale_grad_by_freq): must be False if sparse=True: scale_grad_by_freq not supported with sparse gradients");
    const int64_t count = indices.numel(), width = grad.size(-1);
    const int64_t flat[] = {count, width};
    Tensor numbers = ops::reshape(indices, kInts<-1>), rows = ops::reshape(grad, flat);
    if (numbers.dtype() != DType::Int64) numbers = ops::_to_copy(numbers, DType::Int64);
    if (padding_idx >= 0) {
        const Tensor kept = ops::reshape(ops::nonzero(ops::ne(numbers, Scalar(padding_idx))), kInts<-1>);
        numbers = ops::index_select(numbers, 0, kept);
        rows = ops::index_select(rows, 0, kept);
    }
    return sparse::from_coordinates({ops::unsqueeze(numbers, 0), rows, {num_weights, width}, false});
}

}  // namespace rushlight::composites
