// Sums of exponentials, for rows of adjacent elements and for adjacent columns. The largest element is subtracted
// first, so that nothing overflows: log(sum(e^x)) = top + log(total).
#pragma once

#include "cpu/kernels/rows.h"
#include "cpu/kernels/simd_math.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

template <class T>
RL_INLINE T row_largest(const T* x, int64_t n) {
    const T lowest = -static_cast<T>(__builtin_inf());
    Vec<T> best[4];
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) best[p] = broadcast(lowest);
    for_each_vector<T>(n, [&](int64_t i, auto lanes, int slot) {
        best[slot] = larger(best[slot], fill(load(x + i, lanes), lanes, lowest));
    });
    return largest<T>(larger(larger(best[0], best[1]), larger(best[2], best[3])));
}

/// The maximum number of rows that are processed together. Each step is done for all of these rows before the next step
/// begins, so that the chains of dependent operations of different rows overlap.
inline constexpr int64_t kRowsAtOnce = 16;

/// Returns the number of rows of n elements to process together. These rows fit into the first-level cache, so they
/// stay there between the steps.
RL_INLINE int64_t rows_at_once(int64_t n) {
    const int64_t fit = 8192 / (n + 1);
    return fit < 1 ? 1 : fit < kRowsAtOnce ? fit : kRowsAtOnce;
}

/// Computes two numbers for each of `rows` rows: the largest element, `top`, and the sum of the terms e^(x - top),
/// `total`. Calls keep_exp(row, i, lanes, e) for each vector e of these terms.
template <class T, class Keep>
RL_INLINE void row_exp_sums(const T* x, int64_t rows, int64_t n, T* top, T* total, Keep&& keep_exp) {
    for (int64_t l = 0; l < rows; ++l) top[l] = row_largest(x + l * n, n);
    for (int64_t l = 0; l < rows; ++l) {
        row_sums<T, 1>(n, total + l, [&](int64_t i, auto lanes, Vec<T>* v) {
            v[0] = keep(exp<T>(load(x + l * n + i, lanes) - top[l]), lanes);
            keep_exp(l, i, lanes, v[0]);
        });
    }
}

/// Two numbers for each of several adjacent columns, which fill kCount vectors: the largest element, `top`, and the sum
/// of the terms e^(x - top), `total`.
template <class T, int kCount>
struct LogSums {
    Vec<T> top[kCount], total[kCount];
};

/// Calls body(k, p, vector) for every k < n and p < kCount, where `vector` holds element k of the columns of vector p.
/// Element k of the first column is at x + k * stride.
template <class T, int kCount, class L, class Body>
RL_INLINE void for_side_by_side(const T* x, int64_t n, int64_t stride, L lanes, Body&& body) {
    for (int64_t k = 0; k < n; ++k) {
#pragma GCC unroll 4
        for (int p = 0; p < kCount; ++p) body(k, p, load(x + k * stride + p * kLanes<T>, lanes));
    }
}

/// Computes the LogSums of adjacent columns. Calls keep_exp(k, p, e) for each vector e of terms.
template <class T, int kCount, class L, class Keep>
RL_INLINE LogSums<T, kCount> side_by_side_log_sum(const T* x, int64_t n, int64_t stride, L lanes,
                                                  Keep&& keep_exp) {
    LogSums<T, kCount> s;
#pragma GCC unroll 4
    for (int p = 0; p < kCount; ++p) {
        s.top[p] = broadcast(-static_cast<T>(__builtin_inf()));
        s.total[p] = Vec<T>{};
    }
    for_side_by_side<T, kCount>(x, n, stride, lanes,
                                [&](int64_t, int p, Vec<T> v) { s.top[p] = larger(s.top[p], v); });
    for_side_by_side<T, kCount>(x, n, stride, lanes, [&](int64_t k, int p, Vec<T> v) {
        const Vec<T> e = exp<T>(v - s.top[p]);
        s.total[p] += e;
        keep_exp(k, p, e);
    });
    return s;
}

template <class T, int kCount, class L>
RL_INLINE LogSums<T, kCount> side_by_side_log_sum(const T* x, int64_t n, int64_t stride, L lanes) {
    return side_by_side_log_sum<T, kCount>(x, n, stride, lanes, [](int64_t, int, Vec<T>) {});
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
