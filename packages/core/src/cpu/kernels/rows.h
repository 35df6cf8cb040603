// Loops over one row of adjacent elements. Sums are accumulated in a fixed number of vectors, so they depend on the
// row only.
#pragma once

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// Calls body(i, lanes, slot) for the vectors of [0, n). `slot` is 0 to 3 for vectors of which four are processed
/// together, so that the body can accumulate four sums, and 0 for the others. `lanes` is a WholeVector for whole
/// vectors, for which no test remains at run time, and a Lanes for an incomplete last vector.
template <class T, class Body>
RL_INLINE void for_each_vector(int64_t n, Body&& body) {
    constexpr int kL = kLanes<T>;
    int64_t i = 0;
    for (; i + 4 * kL <= n; i += 4 * kL) {
#pragma GCC unroll 4
        for (int p = 0; p < 4; ++p) body(i + p * kL, WholeVector<T>{}, p);
    }
    for (; i + kL <= n; i += kL) body(i, WholeVector<T>{}, 0);
    if (i < n) body(i, Lanes<T>(n - i), 0);
}

/// The number of elements that are added in T. The sums of longer rows are added in double, so that their error does
/// not grow with the length.
constexpr int64_t kRowBlock = 1 << 14;

/// Computes the sums of `kSums` expressions over a row. term(i, lanes, out) writes the vectors of the expressions
/// at element i to `out`.
template <class T, int kSums, class Term>
RL_INLINE void row_sums(int64_t n, T* sums, Term&& term) {
    double totals[kSums] = {};
    for (int64_t first = 0; first < n; first += kRowBlock) {
        Vec<T> s[4][kSums] = {};
        for_each_vector<T>(n - first < kRowBlock ? n - first : kRowBlock, [&](int64_t i, auto lanes, int slot) {
            Vec<T> v[kSums];
            term(first + i, lanes, v);
#pragma GCC unroll 4
            for (int k = 0; k < kSums; ++k) s[slot][k] += v[k];
        });
#pragma GCC unroll 4
        for (int k = 0; k < kSums; ++k) {
            totals[k] += static_cast<double>(sum((s[0][k] + s[1][k]) + (s[2][k] + s[3][k])));
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kSums; ++k) sums[k] = static_cast<T>(totals[k]);
}

template <class T>
RL_INLINE T row_sum(const T* x, int64_t n) {
    T total;
    row_sums<T, 1>(n, &total, [&](int64_t i, auto lanes, Vec<T>* v) { v[0] = load(x + i, lanes); });
    return total;
}

template <class T>
RL_INLINE T row_squares(const T* x, int64_t n, T mean) {
    T total;
    row_sums<T, 1>(n, &total, [&](int64_t i, auto lanes, Vec<T>* v) {
        const Vec<T> d = keep(load(x + i, lanes) - mean, lanes);
        v[0] = d * d;
    });
    return total;
}

/// Computes y[i] = f(i, lanes), where f returns a vector.
template <class T, class F>
RL_INLINE void map_row(T* y, int64_t n, F&& f) {
    for_each_vector<T>(n, [&](int64_t i, auto lanes, int) { store(y + i, f(i, lanes), lanes); });
}

/// Does the same, with streaming stores if `stream` is true (Note [Streaming stores] in cpu/streaming.h). The caller
/// must execute _mm_sfence() after the last call.
template <class T, class F>
RL_INLINE void map_row(T* y, int64_t n, bool stream, F&& f) {
    if (!stream || reinterpret_cast<uintptr_t>(y) % kVectorBytes != 0) return map_row(y, n, f);
    int64_t i = 0;
    for (; i + kLanes<T> <= n; i += kLanes<T>) store_past_caches(y + i, f(i, WholeVector<T>{}));
    if (i < n) {
        const Lanes<T> rest(n - i);
        store(y + i, f(i, rest), rest);
    }
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
