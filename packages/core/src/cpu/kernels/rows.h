// Passes over one row of adjacent elements. Sums are kept in a fixed number of vectors, so they depend on
// the row alone.
#pragma once

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// Calls body(i, lanes, slot) for the vectors of [0, n): slot runs over 0..3 where four are taken at a time,
/// so that four sums can be kept; lanes distinguishes whole vectors from the last (a constant, so that the test
/// vanishes).
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

/// The sums of `kSums` expressions over a row: term(i, lanes, out) puts their vectors at element i into out.
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

/// y[i] = f(i, lanes), which gives vectors.
template <class T, class F>
RL_INLINE void map_row(T* y, int64_t n, F&& f) {
    for_each_vector<T>(n, [&](int64_t i, auto lanes, int) { store(y + i, f(i, lanes), lanes); });
}

/// The same, past the caches if `stream`: Note [Streaming stores] in cpu/streaming.h. _mm_sfence() follows the last.
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
