#include "cpu/embedding.h"

#include <atomic>
#include <cstring>

#include "cpu/contiguous.h"
#include "cpu/embedding_kernels.h"
#include "cpu/positions.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Returns the indices as contiguous int64 numbers. Raises IndexError if one is outside [0, rows).
const int64_t* checked_indices(KernelContext& ctx, const char* op, const View& indices, int64_t rows) {
    const View dense = contiguous_in(ctx, indices);
    const int64_t count = indices.numel;
    const int64_t* numbers;
    if (dense.dtype == DType::Int64) {
        numbers = dense.as<int64_t>();
    } else {
        RL_CHECK(dense.dtype == DType::Int32, throw_type,
                 "%s: indices must have dtype int64 or int32, got %s", op, name(dense.dtype));
        int64_t* widened = scratch<int64_t>(ctx, count);
        for (int64_t i = 0; i < count; ++i) widened[i] = dense.as<int32_t>()[i];
        numbers = widened;
    }
    if (position_kernels().within(numbers, count, rows)) return numbers;
    for (int64_t i = 0; i < count; ++i) {
        RL_CHECK(numbers[i] >= 0 && numbers[i] < rows, throw_index,
                 "%s: index %lld at position %lld is out of range for a table of %lld rows", op,
                 static_cast<long long>(numbers[i]), static_cast<long long>(i), static_cast<long long>(rows));
    }
    return numbers;
}

}  // namespace

void embedding(KernelContext& ctx, const View& out, const View& weight, const View& indices, int64_t, bool,
               bool) {
    const int64_t* rows = checked_indices(ctx, "embedding", indices, weight.size(0));
    const int64_t width = weight.size(1);
    const View table = width <= 1 || weight.stride(1) == 1 ? weight : contiguous_in(ctx, weight);
    const int64_t item = static_cast<int64_t>(itemsize(weight.dtype)), bytes = width * item,
                  pitch = table.stride(0) * item;
    const char* from = table.as<char>();
    char* to = out.as<char>();
    constexpr int64_t kBytesPerThread = 1 << 16;
    if (bytes == 0) return;
    parallel_for(0, indices.numel, kBytesPerThread / (bytes + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
            if (i + 8 < last) __builtin_prefetch(from + rows[i + 8] * pitch);
            std::memcpy(to + i * bytes, from + rows[i] * pitch, static_cast<size_t>(bytes));
        }
    });
}

void embedding_bag(KernelContext& ctx, const View& out, const View& weight, const View& indices,
                   const View& bags, int64_t count, double divisor, int64_t padding_idx, bool, bool) {
    const int64_t* rows = checked_indices(ctx, "embedding_bag", indices, weight.size(0));
    const int64_t *bag = contiguous_in(ctx, bags).as<int64_t>(), n = indices.numel;
    int64_t* starts = scratch<int64_t>(ctx, count + 1);
    // Iteration i writes the starts of the bags that begin at i, so no two iterations write to the same element.
    std::atomic<bool> fits = true;
    parallel_for(0, n, 1 << 15, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
            const int64_t before = i == 0 ? -1 : bag[i - 1];
            if (before < -1 || bag[i] < before || bag[i] >= count || bag[i] < 0) {
                fits = false;
                return;
            }
            for (int64_t b = before; b < bag[i]; ++b) starts[b + 1] = i;
        }
    });
    for (int64_t i = 0; !fits && i < n; ++i)
        RL_CHECK(bag[i] >= 0 && bag[i] < count && (i == 0 || bag[i] >= bag[i - 1]), throw_runtime,
                 "embedding_bag(bags): must be non-decreasing and below %lld, but element %lld is %lld",
                 static_cast<long long>(count), static_cast<long long>(i), static_cast<long long>(bag[i]));
    for (int64_t b = n == 0 ? -1 : bag[n - 1]; b < count; ++b) starts[b + 1] = n;
    if (out.numel == 0) return;
    const WidenedOut wide(ctx, out);
    const View given = widened(ctx, weight);
    const int64_t width = weight.size(1);
    const View table = width <= 1 || given.stride(1) == 1 ? given : contiguous_in(ctx, given);
    if (table.dtype == DType::Float32)
        embedding_kernels().sum_rows_f32(wide.view().as<float>(), table.as<float>(), table.stride(0), width,
                                         rows, starts, count, divisor, padding_idx);
    else
        embedding_kernels().sum_rows_f64(wide.view().as<double>(), table.as<double>(), table.stride(0), width,
                                         rows, starts, count, divisor, padding_idx);
    wide.finish();
}

void embedding_dense_backward(KernelContext& ctx, const View& grad_weight, const View& grad_output,
                              const View& indices, int64_t num_weights, int64_t padding_idx,
                              bool scale_grad_by_freq) {
    const WidenedOut wide(ctx, grad_weight);
    const View dy = contiguous_in(ctx, widened(ctx, grad_output)), table = wide.view();
    // A row of complex numbers is processed as a row of twice as many real numbers.
    const int64_t count = indices.numel, width = grad_weight.size(1) * (is_complex(table.dtype) ? 2 : 1);
    const int64_t* rows = checked_indices(ctx, "embedding_dense_backward", indices, num_weights);
    clear(table);
    auto scale = [&]<class T>(T) -> const T* {
        if (!scale_grad_by_freq) return nullptr;
        T* s = scratch<T>(ctx, num_weights);
        std::memset(s, 0, sizeof(T) * static_cast<size_t>(num_weights));
        for (int64_t i = 0; i < count; ++i) s[rows[i]] += 1;
        for (int64_t r = 0; r < num_weights; ++r) s[r] = s[r] > 0 ? 1 / s[r] : 0;
        return s;
    };
    if (real_dtype(table.dtype) == DType::Float32) {
        embedding_kernels().add_rows_f32(table.as<float>(), width, dy.as<float>(), rows, count, padding_idx,
                                         scale(float{}));
    } else if (real_dtype(table.dtype) == DType::Float64) {
        embedding_kernels().add_rows_f64(table.as<double>(), width, dy.as<double>(), rows, count, padding_idx,
                                         scale(double{}));
    } else {
        throw_not_implemented("embedding_dense_backward: no kernel for dtype %s on the CPU",
                              name(table.dtype));
    }
    wide.finish();
}

}  // namespace rushlight::cpu
