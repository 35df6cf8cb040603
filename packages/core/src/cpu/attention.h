// Attention (Vaswani et al., 2017), computed block by block with an online softmax (Milakov and Gimelshein, 2018;
// Dao et al., "FlashAttention", 2022), so that the matrix of scores is never stored. float16 and bfloat16 are
// computed in float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes out = softmax(scale * query @ key^T + attn_mask) @ value, with out (batch, heads, targets, width), query
/// (batch, heads, targets, depth), key (batch, key heads, sources, depth) and value (batch, key heads, sources, width).
/// The number of heads is a multiple of the number of key heads. attn_mask may be undefined; it is broadcast to (batch,
/// heads, targets, sources). A bool mask is false where a target does not attend to a source, and any other mask is
/// added to the scores. With `is_causal`, target i attends only to the sources 0 to i. The result of a target that
/// attends to no source is zero. kept (batch, heads, targets, sources), of dtype bool, is the dropout mask and may be
/// undefined: weights are dropped where `kept` is false, and divided by 1 - dropout_p where it is true. log_sum (batch,
/// heads, targets), which may be undefined, receives, for each target, the logarithm of the sum of the exponentials of
/// its scores.
void scaled_dot_product_attention(KernelContext& ctx, const View& out, const View& log_sum, const View& query,
                                  const View& key, const View& value, const View& attn_mask, const View& kept,
                                  bool is_causal, double scale, double dropout_p);

/// Computes the gradients of query, key and value from the `output` and `log_sum` of the forward pass.
void scaled_dot_product_attention_backward(KernelContext& ctx, const View& grad_query, const View& grad_key,
                                           const View& grad_value, const View& grad_output, const View& query,
                                           const View& key, const View& value, const View& attn_mask,
                                           const View& kept, const View& output, const View& log_sum,
                                           bool is_causal, double scale, double dropout_p);

}  // namespace rushlight::cpu
