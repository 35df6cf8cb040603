// Lookup of rows of a table by index, and the dense gradient of the table.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes out = weight[indices], where weight is (rows, width) and out is (indices..., width). Indices are int64 or
/// int32. Raises IndexError if an index is out of range. The other parameters only affect the gradient.
void embedding(KernelContext& ctx, const View& out, const View& weight, const View& indices,
               int64_t padding_idx, bool scale_grad_by_freq, bool sparse);

/// Computes grad_weight (num_weights, width). Row r is the sum of the rows of grad_output whose index is r, added in
/// their order. Row padding_idx is zero, unless padding_idx is -1. With scale_grad_by_freq, row r is divided by the
/// number of occurrences of the index r.
void embedding_dense_backward(KernelContext& ctx, const View& grad_weight, const View& grad_output,
                              const View& indices, int64_t num_weights, int64_t padding_idx,
                              bool scale_grad_by_freq);

/// Computes sums of rows: row indices[i] of `weight` is added to row bags[i] of `out`, for every i. The sums are then
/// divided by `divisor`.
void embedding_bag(KernelContext& ctx, const View& out, const View& weight, const View& indices,
                   const View& bags, int64_t count, double divisor, int64_t padding_idx,
                   bool scale_grad_by_freq, bool sparse);

}  // namespace rushlight::cpu
