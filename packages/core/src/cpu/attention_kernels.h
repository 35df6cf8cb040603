// Kernels of the operators in attention.h.
#pragma once

#include "cpu/capability.h"
#include "rushlight/half.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// An operand with the shape (batch, heads, rows, columns). The elements of each row are adjacent in memory.
template <class T>
struct AttentionOperand {
    T* data;
    int64_t batch, head, row;  // strides in elements

    T* at(int64_t b, int64_t h) const { return data + b * batch + h * head; }
};

/// A mask. Its strides are 0 along dimensions in which it is broadcast. `data` is null if there is no mask.
struct AttentionMask {
    const void* data;
    bool is_bool;
    int64_t batch, head, row, column;
};

/// The operands have elements of type E, and the computation uses type T. E is BFloat16 or the same type as T.
template <class T, class E = T>
struct Attention {
    int64_t batch, heads, key_heads, targets, sources, depth, width;
    AttentionOperand<const E> query, key, value;
    AttentionMask mask;
    const uint8_t* kept;  // (batch, heads, targets, sources), row-major, or null
    T kept_scale;         // 1 / (1 - probability of dropping a weight)
    bool causal;
    T scale;
};

template <class T, class E = T>
struct AttentionLoops {
    // out and log_sum are row-major; log_sum may be null.
    void (*forward)(KernelContext&, const Attention<T, E>&, T* out, T* log_sum);
    // The gradients are row-major; out and grad_out have adjacent columns.
    void (*backward)(KernelContext&, const Attention<T, E>&, T* grad_query, T* grad_key, T* grad_value,
                     AttentionOperand<const E> grad_out, AttentionOperand<const E> out, const T* log_sum);
};

struct AttentionKernels {
    AttentionLoops<float> f32;
    AttentionLoops<double> f64;
    AttentionLoops<float, BFloat16>
        bf16;  // needs the tile registers of AMX; the weights are rounded to bfloat16
};

RUSHLIGHT_KERNEL_TABLE(AttentionKernels, attention_kernels)

}  // namespace rushlight::cpu
