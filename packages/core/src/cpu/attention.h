// Attention (Vaswani et al., 2017) in blocks, with softmax carried along (Milakov and Gimelshein, 2018; Dao
// et al., "FlashAttention", 2022): the matrix of scores is never stored. float16 and bfloat16 go through float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// out (batch, heads, targets, width) = softmax(scale query key^T + mask) value, for query (batch, heads,
/// targets, depth), key (batch, key heads, sources, depth) and value (batch, key heads, sources, width); the
/// key heads divide the heads. attn_mask may be undefined; it is broadcast to (batch, heads, targets,
/// sources) and either bool (false: not attended) or added. With `is_causal` target i attends to sources up
/// to i. The result of a target that attends to no source is zero. kept (batch, heads, targets, sources), bool, may be
/// undefined; where it is false a weight is dropped, and the others are divided by 1 - dropout_p. log_sum (batch,
/// heads, targets), the logarithm of the sum of exponentials, may be undefined.
void scaled_dot_product_attention(KernelContext& ctx, const View& out, const View& log_sum, const View& query,
                                  const View& key, const View& value, const View& attn_mask, const View& kept,
                                  bool is_causal, double scale, double dropout_p);

/// The gradients of query, key and value, from what the forward pass returned.
void scaled_dot_product_attention_backward(KernelContext& ctx, const View& grad_query, const View& grad_key,
                                           const View& grad_value, const View& grad_output, const View& query,
                                           const View& key, const View& value, const View& attn_mask,
                                           const View& kept, const View& output, const View& log_sum,
                                           bool is_causal, double scale, double dropout_p);

}  // namespace rushlight::cpu
