// Attention over (batch, heads, length, depth); the composite converts other shapes to this form.
#include "bodies/attention.h"

namespace rushlight::rules {
namespace {

void check(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
           const Tensor& kept, double dropout_p) {
    const char* op = "scaled_dot_product_attention";
    floating_only(op, query);
    same_dtype(op, "query", query, "key", key);
    same_dtype(op, "query", query, "value", value);
    RL_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, throw_runtime,
             "%s(query, key, value): needs (batch, heads, length, depth), got shapes %s, %s and %s", op,
             to_string(query.sizes()).c_str(), to_string(key.sizes()).c_str(),
             to_string(value.sizes()).c_str());
    const IntList q = query.sizes(), k = key.sizes(), v = value.sizes();
    const bool fits = q[0] == k[0] && k[0] == v[0] && k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0 &&
                      q[3] == k[3] && k[2] == v[2];
    RL_CHECK(
        fits, throw_runtime,
        "%s(query, key, value): must have the shapes (N, H, L, E), (N, G, S, E) and (N, G, S, V), where H is a multiple of G, got %s, %s and %s",
        op, to_string(q).c_str(), to_string(k).c_str(), to_string(v).c_str());
    const int64_t whole[] = {q[0], q[1], q[2], k[2]};
    RL_CHECK(dropout_p >= 0 && dropout_p < 1, throw_value,
             "%s(dropout_p): must be at least 0 and below 1, got %g", op, dropout_p);
    RL_CHECK(!kept.defined() || (kept.dtype() == DType::Bool &&
                                 std::equal(kept.sizes().begin(), kept.sizes().end(), whole, whole + 4)),
             throw_runtime, "%s(kept): needs dtype bool and shape %s, got %s and %s", op,
             to_string(whole).c_str(), kept.defined() ? name(kept.dtype()) : "",
             kept.defined() ? to_string(kept.sizes()).c_str() : "");
    if (!attn_mask.defined()) return;
    bool broadcasts = attn_mask.dim() <= 4;
    for (int64_t d = 0; broadcasts && d < attn_mask.dim(); ++d) {
        const int64_t size = attn_mask.sizes()[d];
        broadcasts = size == 1 || size == whole[4 - attn_mask.dim() + d];
    }
    RL_CHECK(broadcasts, throw_runtime, "%s(attn_mask): shape %s does not broadcast to %s", op,
             to_string(attn_mask.sizes()).c_str(), to_string(whole).c_str());
    RL_CHECK(attn_mask.dtype() == DType::Bool || attn_mask.dtype() == query.dtype(), throw_runtime,
             "%s(attn_mask): must have dtype bool or the dtype of query, %s, got %s", op, name(query.dtype()),
             name(attn_mask.dtype()));
}

}  // namespace

Outputs attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                  const Tensor& kept, bool, double, double dropout_p) {
    check(query, key, value, attn_mask, kept, dropout_p);
    const IntList q = query.sizes();
    const int64_t out[] = {q[0], q[1], q[2], value.size(3)};
    Outputs outs;
    outs.add(out, query.dtype(), query.device());
    outs.add(q.first(3), compute_dtype(query.dtype()), query.device());
    return outs;
}

Outputs attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                           const Tensor& attn_mask, const Tensor& kept, const Tensor& output, const Tensor&,
                           bool, double, double dropout_p) {
    check(query, key, value, attn_mask, kept, dropout_p);
    RL_CHECK(
        std::equal(grad.sizes().begin(), grad.sizes().end(), output.sizes().begin(), output.sizes().end()),
        throw_runtime, "attention_backward(grad): needs the result's shape %s, got %s",
        to_string(output.sizes()).c_str(), to_string(grad.sizes()).c_str());
    Outputs outs;
    outs.like(query);
    outs.like(key);
    outs.like(value);
    return outs;
}

}  // namespace rushlight::rules
