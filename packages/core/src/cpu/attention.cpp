#include "cpu/attention.h"

#include "cpu/attention_kernels.h"
#include "cpu/contiguous.h"
#include "cpu/gemm.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

template <class T, class E> const AttentionLoops<T, E>& loops();
template <> const AttentionLoops<float, float>& loops() { return attention_kernels().f32; }
template <> const AttentionLoops<double, double>& loops() { return attention_kernels().f64; }
template <> const AttentionLoops<float, BFloat16>& loops() { return attention_kernels().bf16; }

// Calls f with values of the type in which attention is computed and of the operands' type.
template <class F>
void with_type(const char* op, DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{}, float{});
    if (dtype == DType::Float64) return f(double{}, double{});
    if (dtype == DType::BFloat16) return f(float{}, BFloat16{});
    throw_not_implemented("%s: no kernel for dtype %s on the CPU", op, name(dtype));
}

// Returns the dtype of the operands of the kernel: bfloat16 if the processor multiplies it, and otherwise float32 for a reduced
// dtype.
DType operand_dtype(DType dtype) {
    if (dtype == DType::BFloat16 && gemm_kernels().has_tiles()) return dtype;
    return is_reduced(dtype) ? DType::Float32 : dtype;
}

// Returns a view with adjacent columns, converted to float32 if the kernel needs it. Heads that are views of one projection
// already have adjacent columns and are not copied.
View with_adjacent_columns(KernelContext& ctx, const View& given) {
    const DType dtype = operand_dtype(given.dtype);
    const View v = dtype == given.dtype ? given : contiguous_in(ctx, given, dtype);
    return v.stride(-1) == 1 || v.size(-1) <= 1 ? v : contiguous_in(ctx, v);
}

template <class E>
AttentionOperand<const E> operand(const View& v) {
    return {v.as<const E>(), v.stride(0), v.stride(1), v.stride(2)};
}

AttentionMask mask_of(const View& v) {
    if (!v.defined()) return {nullptr, false, 0, 0, 0, 0};
    auto stride = [&](int from_last) {
        const int d = v.ndim - from_last;
        return d < 0 || v.sizes[d] == 1 ? 0 : v.strides[d];
    };
    return {v.data, v.dtype == DType::Bool, stride(4), stride(3), stride(2), stride(1)};
}

template <class T, class E>
Attention<T, E> problem(const View& q, const View& k, const View& v, const View& mask, const View& kept,
                        bool causal, double scale, double dropout_p) {
    return {q.size(0),
            q.size(1),
            k.size(1),
            q.size(2),
            k.size(2),
            q.size(3),
            v.size(3),
            operand<E>(q),
            operand<E>(k),
            operand<E>(v),
            mask_of(mask),
            kept.defined() ? kept.as<uint8_t>() : nullptr,
            static_cast<T>(1 / (1 - dropout_p)),
            causal,
            static_cast<T>(scale)};
}

View row_major(KernelContext& ctx, const View& v) { return v.defined() ? contiguous_in(ctx, v) : v; }

// Converts an additive mask to the dtype in which attention is computed for operands of a dtype.
View suitable_mask(KernelContext& ctx, const View& mask, DType operands) {
    const DType dtype = is_reduced(operands) ? DType::Float32 : operands;
    return !mask.defined() || mask.dtype == DType::Bool || mask.dtype == dtype
               ? mask
               : contiguous_in(ctx, mask, dtype);
}

}  // namespace

void scaled_dot_product_attention(KernelContext& ctx, const View& out, const View& log_sum, const View& query,
                                  const View& key, const View& value, const View& attn_mask, const View& kept,
                                  bool is_causal, double scale, double dropout_p) {
    if (out.numel == 0) return;
    const WidenedOut wide(ctx, out), wide_sums(ctx, log_sum);
    const View q = with_adjacent_columns(ctx, query), k = with_adjacent_columns(ctx, key);
    const View v = with_adjacent_columns(ctx, value), mask = suitable_mask(ctx, attn_mask, q.dtype);
    const View weights = row_major(ctx, kept);
    with_type("scaled_dot_product_attention", q.dtype, [&]<class T, class E>(T, E) {
        loops<T, E>().forward(ctx, problem<T, E>(q, k, v, mask, weights, is_causal, scale, dropout_p),
                              wide.view().template as<T>(),
                              log_sum.defined() ? wide_sums.view().template as<T>() : nullptr);
    });
    wide.finish();
    wide_sums.finish();
}

void scaled_dot_product_attention_backward(KernelContext& ctx, const View& grad_query, const View& grad_key,
                                           const View& grad_value, const View& grad_output, const View& query,
                                           const View& key, const View& value, const View& attn_mask,
                                           const View& kept, const View& output, const View& log_sum,
                                           bool is_causal, double scale, double dropout_p) {
    const WidenedOut dq(ctx, grad_query), dk(ctx, grad_key), dv(ctx, grad_value);
    if (output.numel == 0) {
        for (const View* g : {&grad_query, &grad_key, &grad_value}) clear(*g);
        return;
    }
    const View q = with_adjacent_columns(ctx, query), k = with_adjacent_columns(ctx, key);
    const View v = with_adjacent_columns(ctx, value), mask = suitable_mask(ctx, attn_mask, q.dtype);
    const View o = with_adjacent_columns(ctx, output), dy = with_adjacent_columns(ctx, grad_output);
    const View sums = contiguous_in(ctx, widened(ctx, log_sum)), weights = row_major(ctx, kept);
    with_type("scaled_dot_product_attention_backward", q.dtype, [&]<class T, class E>(T, E) {
        loops<T, E>().backward(ctx, problem<T, E>(q, k, v, mask, weights, is_causal, scale, dropout_p),
                               dq.view().template as<T>(), dk.view().template as<T>(),
                               dv.view().template as<T>(), operand<E>(dy), operand<E>(o), sums.as<T>());
    });
    dq.finish();
    dk.finish();
    dv.finish();
}

}  // namespace rushlight::cpu
