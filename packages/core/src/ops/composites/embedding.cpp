#include "rushlight/ops/embedding.h"
#include "bodies/embedding.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/embedding_dense_backward.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/slice.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {

Tensor embedding_grad_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                           int64_t padding_idx, bool scale_grad_by_freq) {
    Tensor rows = ops::embedding(grad, indices, -1, false, false);
    if (scale_grad_by_freq) {
        // How often each number occurs is the gradient of a table of ones.
        Tensor one =
            ops::ones_like(ops::slice(rows, -1, 0, 1, 1), std::nullopt, std::nullopt, false, std::nullopt);
        Tensor counts = ops::embedding_dense_backward(one, indices, num_weights, -1, false);
        rows = ops::div(rows, ops::embedding(counts, indices, -1, false, false));
    }
    if (padding_idx < 0) return rows;
    return ops::where(ops::unsqueeze(ops::eq(indices, Scalar(padding_idx)), -1), 0, rows);
}

}  // namespace rushlight::composites
