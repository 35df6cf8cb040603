// Attention: one kernel computes common calls; operators compute uncommon shapes and higher derivatives.
// See Note [Differentiable composites].
#include <atomic>
#include <cmath>
#include <limits>

#include "bodies/attention.h"
#include "ops/attention_choice.h"
#include "ops/differentiated.h"
#include "rushlight/ops/_attention.h"
#include "rushlight/ops/_attention_backward.h"
#include "rushlight/ops/_dropout_mask.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/dropout.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/ge.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/softmax.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"
#include "rushlight/random.h"

namespace rushlight {
namespace {

std::atomic<bool> may_be_fused{true}, may_be_composed{true};

}  // namespace

void choose_attention(bool fused, bool composed) {
    may_be_fused.store(fused, std::memory_order_relaxed);
    may_be_composed.store(composed, std::memory_order_relaxed);
}

}  // namespace rushlight

namespace rushlight::composites {
namespace {

Tensor transposed(const Tensor& t) { return ops::transpose(t, -2, -1); }

// Repeats the heads of a key or value, (..., key heads, length, depth), to the number of heads of the query, (..., heads,
// length, depth). Each head of the key serves several heads of the query.
Tensor share_heads(const Tensor& t, int64_t heads) {
    const int64_t own = t.size(-3);
    if (own == heads) return t;
    std::vector<int64_t> sizes = t.shape();
    sizes.insert(sizes.end() - 2, heads / own);
    Tensor repeated = ops::expand(ops::unsqueeze(t, -3), sizes);
    sizes.erase(sizes.end() - 3);
    sizes[sizes.size() - 3] = heads;
    return ops::reshape(repeated, sizes);
}

// The gradient of share_heads: sums over the heads of the query that share a head of `t`.
Tensor sum_shared(const Tensor& grad, const Tensor& t) {
    const int64_t own = t.size(-3), heads = grad.size(-3);
    if (own == heads) return grad;
    std::vector<int64_t> sizes = t.shape();
    sizes.insert(sizes.end() - 2, heads / own);
    return ops::sum(ops::reshape(grad, sizes), kInts<-3>, false, std::nullopt);
}

Tensor weights_of(const Tensor& query, const Tensor& key, const Tensor& mask, bool is_causal, double scale) {
    Tensor scores = ops::matmul(ops::mul(query, scale), transposed(key));
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    if (is_causal) {
        auto positions = [&](int64_t n) {
            return ops::arange(Scalar(n), std::nullopt, query.device(), false);
        };
        Tensor seen = ops::ge(ops::unsqueeze(positions(query.size(-2)), 1), positions(key.size(-2)));
        scores = ops::where(seen, scores, kNever);
    }
    if (mask.defined())
        scores = mask.dtype() == DType::Bool ? ops::where(mask, scores, kNever) : ops::add(scores, mask);
    if ((!is_causal && !mask.defined()) || key.size(-2) == 0) return ops::softmax(scores, -1, std::nullopt);
    // Rows in which every key is masked have weights of zero.
    Tensor idle = ops::eq(ops::amax(scores, kInts<-1>, true), Scalar(kNever));
    return ops::where(idle, 0, ops::softmax(ops::where(idle, 0, scores), -1, std::nullopt));
}

// Returns `mask` with the positions after the query's own position masked, too.
Tensor causal(const Tensor& mask, int64_t queries, int64_t keys) {
    auto positions = [&](int64_t n) { return ops::arange(Scalar(n), std::nullopt, mask.device(), false); };
    Tensor seen = ops::ge(ops::unsqueeze(positions(queries), 1), positions(keys));
    const bool bools = mask.dtype() == DType::Bool;
    return ops::where(seen, mask, bools ? Scalar(false) : Scalar(-std::numeric_limits<double>::infinity()));
}

void check(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p) {
    const char* op = "scaled_dot_product_attention";
    RL_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, throw_runtime,
             "%s(query, key, value): needs at least two dimensions (length, depth), got shapes %s, %s and %s",
             op, to_string(query.sizes()).c_str(), to_string(key.sizes()).c_str(),
             to_string(value.sizes()).c_str());
    RL_CHECK(query.dtype() == key.dtype() && key.dtype() == value.dtype(), throw_runtime,
             "%s(query, key, value): must have the same dtype, got %s, %s and %s", op, name(query.dtype()),
             name(key.dtype()), name(value.dtype()));
    RL_CHECK(query.size(-1) == key.size(-1), throw_runtime,
             "%s(query, key): must have the same depth (dimension -1), got shapes %s and %s", op,
             to_string(query.sizes()).c_str(), to_string(key.sizes()).c_str());
    RL_CHECK(key.size(-2) == value.size(-2), throw_runtime,
             "%s(key, value): must have the same sequence length (dimension -2), got shapes %s and %s", op,
             to_string(key.sizes()).c_str(), to_string(value.sizes()).c_str());
    RL_CHECK(dropout_p >= 0 && dropout_p < 1, throw_value,
             "%s(dropout_p): must be at least 0 and below 1, got %g", op, dropout_p);
}

// Whether the kernel supports the batches and the heads of these shapes.
bool is_plain(const Tensor& query, const Tensor& key, const Tensor& value) {
    if (query.dim() > 4 || key.dim() != query.dim() || value.dim() != query.dim() || key.numel() == 0)
        return false;
    if (query.dim() == 4 && (query.size(1) % key.size(1) != 0 || key.size(1) != value.size(1))) return false;
    return query.dim() == 2 || (query.size(0) == key.size(0) && key.size(0) == value.size(0));
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
    check(query, key, value, dropout_p);
    if (attn_mask.defined() && is_causal)
        return scaled_dot_product_attention(query, key, value,
                                            causal(attn_mask, query.size(-2), key.size(-2)), dropout_p, false,
                                            scale, enable_gqa);
    const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
    const bool shared = query.dim() >= 3 && key.dim() >= 3 && key.size(-3) != query.size(-3);
    if (shared && enable_gqa)
        RL_CHECK(
            key.size(-3) > 0 && query.size(-3) % key.size(-3) == 0 && key.size(-3) == value.size(-3),
            throw_runtime,
            "scaled_dot_product_attention(enable_gqa): the number of heads of query must be a multiple of the "
            "number of heads of key and value, got %lld heads of query, %lld of key and %lld of value",
            (long long)query.size(-3), (long long)key.size(-3), (long long)value.size(-3));
    const DrawScope scope(nullptr);  // of the dropout of the weights
    if (!differentiated(attn_mask) && !differentiated_forward(query, key, value) &&
        is_plain(query, key, value) && (!shared || enable_gqa) &&
        may_be_fused.load(std::memory_order_relaxed)) {
        // Views (N, L, E) as (N, 1, L, E), and (L, E) as (1, 1, L, E).
        const int64_t missing = 4 - query.dim();
        auto full = [&](const Tensor& t) {
            Tensor with_heads = missing > 0 ? ops::unsqueeze(t, -3) : t;
            return missing > 1 ? ops::unsqueeze(with_heads, 0) : with_heads;
        };
        const bool lacks_heads = missing == 1 && attn_mask.defined() && attn_mask.dim() == 3;
        const Tensor q = full(query), k = full(key);
        const Tensor kept = dropout_p > 0 ? ops::_dropout_mask(q, k.size(2), dropout_p) : Tensor();
        Tensor result =
            ops::_attention(q, k, full(value), lacks_heads ? ops::unsqueeze(attn_mask, -3) : attn_mask, kept,
                            is_causal, factor, dropout_p);
        if (missing == 0) return result;
        return missing == 1 ? ops::squeeze(result, kInts<1>) : ops::squeeze(result, kInts<0, 1>);
    }
    RL_CHECK(
        may_be_composed.load(std::memory_order_relaxed), throw_runtime,
        "scaled_dot_product_attention: no kernel that is enabled can compute this call\n"
        "hint: enable the backend MATH (backends.cuda.enable_math_sdp, nn.attention.sdpa_kernel), which supports every call");
    if (const DType wide = compute_dtype(query.dtype()); wide != query.dtype()) {
        // Converts half types to float32, so that the scores are not rounded before the softmax. The kernel does not
        // round them either.
        auto widened = [&](const Tensor& t) {
            return t.defined() && t.dtype() == query.dtype() ? ops::_to_copy(t, wide) : t;
        };
        Tensor result =
            scaled_dot_product_attention(widened(query), widened(key), widened(value), widened(attn_mask),
                                         dropout_p, is_causal, scale, enable_gqa);
        return ops::_to_copy(result, query.dtype());
    }
    const bool share = enable_gqa && query.dim() >= 3 && key.dim() >= 3;
    Tensor k = share ? share_heads(key, query.size(-3)) : key,
           v = share ? share_heads(value, query.size(-3)) : value;
    Tensor weights = weights_of(query, k, attn_mask, is_causal, factor);
    if (dropout_p > 0) weights = ops::dropout(weights, dropout_p, true);
    return ops::matmul(weights, v);
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& attn_mask, const Tensor& kept,
                                                      const Tensor& output, const Tensor& log_sum,
                                                      bool is_causal, double scale, double dropout_p) {
    if (!differentiated(grad, query, key, value))
        return ops::_attention_backward(grad, query, key, value, attn_mask, kept, output, log_sum, is_causal,
                                        scale, dropout_p);
    RL_CHECK(
        key.size(1) > 0 && query.size(1) % key.size(1) == 0, throw_runtime,
        "attention_backward(query, key): the number of heads of query must be a multiple of the number of heads of key, got %lld and %lld",
        (long long)query.size(1), (long long)key.size(1));
    Tensor k = share_heads(key, query.size(-3)), v = share_heads(value, query.size(-3));
    Tensor weights = weights_of(query, k, attn_mask, is_causal, scale);
    auto dropped = [&](const Tensor& t) {
        return kept.defined() ? ops::where(kept, ops::mul(t, 1 / (1 - dropout_p)), 0) : t;
    };
    Tensor pull = dropped(ops::matmul(grad, transposed(v)));
    Tensor scores =
        ops::mul(weights, ops::sub(pull, ops::sum(ops::mul(pull, weights), kInts<-1>, true, std::nullopt)));
    scores = ops::mul(scores, scale);
    return {ops::matmul(scores, k), sum_shared(ops::matmul(transposed(scores), query), key),
            sum_shared(ops::matmul(transposed(dropped(weights)), grad), value)};
}

}  // namespace rushlight::composites
