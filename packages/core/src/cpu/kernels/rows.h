// Loops over one row of adjacent elements. Sums are accumulated in a fixed number of vectors, so they depend on the
// row only.
#pragma once

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// Divides the elements [0, n) into vectors, and calls body(i, lanes, slot) for each vector, which begins at element i.
/// Most vectors are processed in groups of four, with `slot` 0 to 3, so that the body can accumulate four sums; the
/// other vectors have slot 0. `lanes` is a WholeVector for whole vectors, which needs no test at run time, and a Lanes
/// for an incomplete last vector.
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

/// Computes `kSums` sums over a row. term(i, lanes, out) writes one vector of terms for each sum to `out`: the terms of
/// the elements from i on.
template <class T, int kSums, class Term>
RL_INLINE void row_sums(int64_t n, T* sums, Term&& term) {
    Vec<T> s[4][kSums] = {};
    for_each_vector<T>(n, [&](int64_t i, auto lanes, int slot) {
        Vec<T> v[kSums];
        term(i, lanes, v);
#pragma GCC unroll 4
        for (int k = 0; k < kSums; ++k) s[slot][k] += v[k];
    });
#pragma GCC unroll 4
    for (int k = 0; k < kSums; ++k) sums[k] = sum((s[0][k] + s[1][k]) + (s[2][k] + s[3][k]));
}

/// The largest number of elements whose sum is computed in type T. A longer row is divided into parts of this length,
/// whose sums are added in double precision. The error therefore does not grow with the length of the row.
constexpr int64_t kRowPart = 1 << 14;

template <class T>
T sum_of_long_row(const T* x, int64_t n);
template <class T>
T squares_of_long_row(const T* x, int64_t n, T mean);

template <class T>
RL_INLINE T row_sum(const T* x, int64_t n) {
    if (n > kRowPart) return sum_of_long_row(x, n);
    T total;
    row_sums<T, 1>(n, &total, [&](int64_t i, auto lanes, Vec<T>* v) { v[0] = load(x + i, lanes); });
    return total;
}

/// Returns the sum of (x[i] - mean)^2.
template <class T>
RL_INLINE T row_squares(const T* x, int64_t n, T mean) {
    if (n > kRowPart) return squares_of_long_row(x, n, mean);
    T total;
    row_sums<T, 1>(n, &total, [&](int64_t i, auto lanes, Vec<T>* v) {
        const Vec<T> d = keep(load(x + i, lanes) - mean, lanes);
        v[0] = d * d;
    });
    return total;
}

template <class T>
[[gnu::noinline]] T sum_of_long_row(const T* x, int64_t n) {
    double total = 0;
    for (; n > 0; x += kRowPart, n -= kRowPart)
        total += static_cast<double>(row_sum(x, n < kRowPart ? n : kRowPart));
    return static_cast<T>(total);
}

template <class T>
[[gnu::noinline]] T squares_of_long_row(const T* x, int64_t n, T mean) {
    double total = 0;
    for (; n > 0; x += kRowPart, n -= kRowPart)
        total += static_cast<double>(row_squares(x, n < kRowPart ? n : kRowPart, mean));
    return static_cast<T>(total);
}

/// Computes y[i] = f(i, lanes), where f returns a vector.
template <class T, class F>
RL_INLINE void map_row(T* y, int64_t n, F&& f) {
    for_each_vector<T>(n, [&](int64_t i, auto lanes, int) { store(y + i, f(i, lanes), lanes); });
}

/// Computes y[i] = f(i, lanes) like the function above. If `stream` is true, uses streaming stores (Note [Streaming
/// stores] in cpu/streaming.h). The caller must execute _mm_sfence() after the last call.
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
