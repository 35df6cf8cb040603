// Products whose left operand has few rows. The right operand is read from memory once, row after row.
#pragma once

#include "cpu/kernels/gemm_micro.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

template <class T>
Epilogue<T> epilogue_at(const Gemm<T>& g, int64_t row, int64_t column) {
    const T* init = g.init == nullptr ? nullptr : g.init + row * g.init_row + column * g.init_col;
    return {g.alpha, g.beta, init, g.init_row, g.init_col};
}

// Number of rows of b that are read at a time, maximum number of rows of a, and number of columns whose sums fit in
// the first-level cache.
constexpr int kStreams = 8;
constexpr int64_t kStreamRows = 8, kStreamColumns = 512;
// Number of steps along k after which sums are written to memory. Shorter sums have smaller rounding errors.
constexpr int64_t kStreamDepth = 2048;

// Adds kStreams steps along k to the sums of kRows rows. x holds kStreams elements of a for each row.
template <class T, int kRows>
void stream_rows(const Gemm<T>& g, const T* b, int64_t count, const T* x, T* total, int64_t columns) {
    constexpr int kL = kLanes<T>;
    auto step = [&](int64_t j, auto read) {
        Vec<T> bv[kStreams];
#pragma GCC unroll 8
        for (int p = 0; p < kStreams; ++p) {
            bv[p] = p < count ? read(b + p * g.b_row + j) : Vec<T>{};
            __builtin_prefetch(b + (kStreams + p) * g.b_row + j);
        }
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
            Vec<T> s = load(total + i * kStreamColumns + j);
#pragma GCC unroll 8
            for (int p = 0; p < kStreams; ++p) s += x[i * kStreams + p] * bv[p];
            store(total + i * kStreamColumns + j, s);
        }
    };
    int64_t j = 0;
    for (; j + kL <= columns; j += kL) step(j, [](const T* q) { return load(q); });
    if (j < columns) step(j, [lanes = Lanes<T>(columns - j)](const T* q) { return load(q, lanes); });
}

// Computes the steps [k_begin, k_end) of columns [j0, j0 + columns). Eight rows of b are read at a time, each in
// order, which suits the hardware prefetchers.
template <class T>
void stream_block(const Gemm<T>& g, int64_t j0, int64_t columns, int64_t k_begin, int64_t k_end) {
    constexpr int kL = kLanes<T>;
    alignas(64) T total[kStreamRows * kStreamColumns];
    alignas(64) T x[kStreamRows * kStreams];
    for (int64_t i = 0; i < g.m; ++i) {
        for (int64_t j = 0; j < columns; j += kL) store(total + i * kStreamColumns + j, Vec<T>{});
    }
    for (int64_t k = k_begin; k < k_end; k += kStreams) {
        const int64_t count = min(kStreams, k_end - k);
        for (int64_t i = 0; i < g.m; ++i) {
            for (int64_t p = 0; p < kStreams; ++p) {
                x[i * kStreams + p] = p < count ? g.a[i * g.a_row + (k + p) * g.a_col] : T(0);
            }
        }
        const T* b = g.b + k * g.b_row + j0;
        int64_t i = 0;
        if (g.m >= 8) stream_rows<T, 8>(g, b, count, x, total, columns), i += 8;
        if (g.m & 4)
            stream_rows<T, 4>(g, b, count, x + i * kStreams, total + i * kStreamColumns, columns), i += 4;
        if (g.m & 2)
            stream_rows<T, 2>(g, b, count, x + i * kStreams, total + i * kStreamColumns, columns), i += 2;
        if (g.m & 1) stream_rows<T, 1>(g, b, count, x + i * kStreams, total + i * kStreamColumns, columns);
    }
    for (int64_t i = 0; i < g.m; ++i) {
        Epilogue<T> e = epilogue_at(g, i, j0);
        T* c = g.c + i * g.c_row + j0;
        if (k_begin > 0) e = {g.alpha, T(1), c, g.c_row, 1};
        for (int64_t j = 0; j < columns; j += kL) {
            const Lanes<T> lanes(min(kL, columns - j));
            store(c + j, finish(e, load(total + i * kStreamColumns + j), 0, j, lanes), lanes);
        }
    }
}

template <class T>
void stream(const Gemm<T>& g) {
    for (int64_t j = 0; j < g.n; j += kStreamColumns) {
        for (int64_t k = 0; k < g.k; k += kStreamDepth) {
            stream_block(g, j, min(kStreamColumns, g.n - j), k, min(g.k, k + kStreamDepth));
        }
    }
}

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
