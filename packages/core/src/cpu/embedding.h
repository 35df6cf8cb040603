// Rows of a table by number, and the dense gradient of the table.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// out (indices..., width) = weight (rows, width)[indices]; indices are int64 or int32, and IndexError where
/// out of range. The other parameters matter to the gradient only.
void embedding(KernelContext& ctx, const View& out, const View& weight, const View& indices,
               int64_t padding_idx, bool scale_grad_by_freq, bool sparse);

/// grad_weight (num_weights, width): the sum of grad_output's rows for each index, in their order; none for
/// padding_idx (-1: no padding). With scale_grad_by_freq a row's gradient is divided by how often its index
/// occurs.
void embedding_dense_backward(KernelContext& ctx, const View& grad_weight, const View& grad_output,
                              const View& indices, int64_t num_weights, int64_t padding_idx,
                              bool scale_grad_by_freq);

/// Sums of rows: row `indices[i]` counts to sum `bags[i]`; these are divided by
/// `divisor`.
void embedding_bag(KernelContext& ctx, const View& out, const View& weight, const View& indices,
                   const View& bags, int64_t count, double divisor, int64_t padding_idx,
                   bool scale_grad_by_freq, bool sparse);

}  // namespace rushlight::cpu
