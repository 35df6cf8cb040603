// Products whose left operand has few rows. The right operand is read from memory once, row after row.
#pragma once

#include <type_traits>

#include "cpu/kernels/gemm_micro.h"
#include "cpu/kernels/halves.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t round_up(int64_t n, int64_t step) { return ceil_div(n, step) * step; }
// Returns the length of equal parts of n. It is a multiple of `step`, and at most `most`, which is a multiple of `step`.
int64_t even_part(int64_t n, int64_t most, int64_t step) {
    return round_up(ceil_div(n, ceil_div(n, most)), step);
}

template <class T, class B>
Epilogue<T> epilogue_at(const Gemm<T, B>& g, int64_t row, int64_t column) {
    const T* init = g.init == nullptr ? nullptr : g.init + row * g.init_row + column * g.init_col;
    return {g.alpha, g.beta, init, g.init_row, g.init_col};
}

// Number of rows of b that are read at a time, maximum number of rows of a, and of these the number that are processed together.
constexpr int kStreams = 8;
constexpr int64_t kStreamRows = 16, kStreamPass = 8;
// Number of columns whose sums fit in the first-level cache, and the distance between rows of sums. Rows whose distance is a
// power of two would evict each other.
constexpr int64_t stream_columns(int64_t rows) { return rows <= kStreamPass ? 512 : 256; }
constexpr int64_t kStreamStride = 512 + 16;
// Number of steps along k after which sums are written to memory. Shorter sums have smaller rounding errors.
constexpr int64_t kStreamDepth = 2048;

// Adds kStreams steps along k to the sums of kRows rows. x holds kStreams elements of a for each row.
template <class T, int kRows, class B>
void stream_rows(const Gemm<T, B>& g, const B* b, int64_t count, const T* x, T* total, int64_t columns) {
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
            Vec<T> s = load(total + i * kStreamStride + j);
#pragma GCC unroll 8
            for (int p = 0; p < kStreams; ++p) s += x[i * kStreams + p] * bv[p];
            store(total + i * kStreamStride + j, s);
        }
    };
    int64_t j = 0;
    if constexpr (std::is_same_v<B, T>) {
        for (; j + kL <= columns; j += kL) step(j, [](const T* q) { return load(q); });
        if (j < columns) step(j, [lanes = Lanes<T>(columns - j)](const T* q) { return load(q, lanes); });
    } else {
        for (; j + kL <= columns; j += kL) step(j, [](const B* q) { return floats_at(q); });
        if (j < columns) step(j, [rest = columns - j](const B* q) { return floats_at(q, rest); });
    }
}

template <class T, class B>
using StreamFn = void (*)(const Gemm<T, B>&, const B*, int64_t, const T*, T*, int64_t);
template <class T, class B>
constexpr StreamFn<T, B> kStreamRowsOf[kStreamPass] = {
    stream_rows<T, 1, B>, stream_rows<T, 2, B>, stream_rows<T, 3, B>, stream_rows<T, 4, B>,
    stream_rows<T, 5, B>, stream_rows<T, 6, B>, stream_rows<T, 7, B>, stream_rows<T, 8, B>};

// Computes the steps [k_begin, k_end) of columns [j0, j0 + columns). Eight rows of b are read at a time, each in
// order, which suits the hardware prefetchers.
template <class T, class B>
void stream_block(const Gemm<T, B>& g, int64_t j0, int64_t columns, int64_t k_begin, int64_t k_end) {
    constexpr int kL = kLanes<T>;
    alignas(64) T total[kStreamRows * kStreamStride];
    alignas(64) T x[kStreamRows * kStreams];
    for (int64_t i = 0; i < g.m; ++i) {
        for (int64_t j = 0; j < columns; j += kL) store(total + i * kStreamStride + j, Vec<T>{});
    }
    for (int64_t k = k_begin; k < k_end; k += kStreams) {
        const int64_t count = min(kStreams, k_end - k);
        for (int64_t i = 0; i < g.m; ++i) {
            for (int64_t p = 0; p < kStreams; ++p) {
                x[i * kStreams + p] = p < count ? g.a[i * g.a_row + (k + p) * g.a_col] : T(0);
            }
        }
        const B* b = g.b + k * g.b_row + j0;
        for (int64_t i = 0; i < g.m; i += kStreamPass) {
            const int64_t rows = min(kStreamPass, g.m - i);
            kStreamRowsOf<T, B>[rows - 1](g, b, count, x + i* kStreams, total + i* kStreamStride, columns);
        }
    }
    for (int64_t i = 0; i < g.m; ++i) {
        Epilogue<T> e = epilogue_at(g, i, j0);
        T* c = g.c + i * g.c_row + j0;
        if (k_begin > 0) e = {g.alpha, T(1), c, g.c_row, 1};
        for (int64_t j = 0; j < columns; j += kL) {
            const Lanes<T> lanes(min(kL, columns - j));
            store(c + j, finish(e, load(total + i * kStreamStride + j), 0, j, lanes), lanes);
        }
    }
}

// Computes the columns of one row for a product of kSteps steps along k. The sums stay in registers. The steps are added in
// the same order as in stream_block().
template <class T, int kSteps>
void stream_few_steps(const Gemm<T>& g, int64_t row) {
    constexpr int kL = kLanes<T>;
    T x[kSteps];
    for (int p = 0; p < kSteps; ++p) x[p] = g.a[row * g.a_row + p * g.a_col];
    const Epilogue<T> e = epilogue_at(g, row, 0);
    T* const c = g.c + row * g.c_row;
    const auto columns = [&](int64_t j, auto... lanes) {
        Vec<T> total{};
#pragma GCC unroll 8
        for (int p = 0; p < kSteps; ++p) total += x[p] * load(g.b + p * g.b_row + j, lanes...);
        store(c + j, finish(e, total, 0, j, lanes...), lanes...);
    };
    int64_t j = 0;
    for (; j + kL <= g.n; j += kL) columns(j);
    if (j < g.n) columns(j, Lanes<T>(g.n - j));
}

template <class T>
constexpr void (*kStreamFewStepsOf[kStreams])(const Gemm<T>&, int64_t) = {
    stream_few_steps<T, 1>, stream_few_steps<T, 2>, stream_few_steps<T, 3>, stream_few_steps<T, 4>,
    stream_few_steps<T, 5>, stream_few_steps<T, 6>, stream_few_steps<T, 7>, stream_few_steps<T, 8>};

template <class T, class B>
void stream(const Gemm<T, B>& g) {
    if constexpr (std::is_same_v<T, B>) {
        if (g.k <= kStreams && g.m <= 2) {
            for (int64_t i = 0; i < g.m; ++i) kStreamFewStepsOf<T>[g.k - 1](g, i);
            return;
        }
    }
    const int64_t width = stream_columns(g.m);
    for (int64_t j = 0; j < g.n; j += width) {
        for (int64_t k = 0; k < g.k; k += kStreamDepth) {
            stream_block(g, j, min(width, g.n - j), k, min(g.k, k + kStreamDepth));
        }
    }
}

// --- b in a half type, with adjacent elements along k --------------------------------------------------------------------

// Computes kRows rows and kColumns columns of the product.
template <int kRows, int kColumns, class B>
void dots_of_halves(const Gemm<float, B>& g, int64_t i, int64_t j) {
    constexpr int64_t kL = kLanes<float>;
    const float* a = g.a + i * g.a_row;
    const B* b = g.b + j * g.b_col;
    Vec<float> sums[kRows][kColumns] = {};
    const auto add = [&](auto read_a, auto read_b) {
        Vec<float> x[kRows];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) x[r] = read_a(a + r * g.a_row);
#pragma GCC unroll 8
        for (int c = 0; c < kColumns; ++c) {
            const Vec<float> y = read_b(b + c * g.b_col);
#pragma GCC unroll 4
            for (int r = 0; r < kRows; ++r) sums[r][c] += x[r] * y;
        }
    };
    int64_t k = 0;
    for (; k + kL <= g.k; k += kL)
        add([k](const float* p) { return load(p + k); }, [k](const B* p) { return floats_at(p + k); });
    if (k < g.k) {
        const int64_t rest = g.k - k;
        add([k, lanes = Lanes<float>(rest)](const float* p) { return load(p + k, lanes); },
            [k, rest](const B* p) { return floats_at(p + k, rest); });
    }
    for (int r = 0; r < kRows; ++r) {
        for (int c = 0; c < kColumns; ++c) {
            const Epilogue<float> e = epilogue_at(g, i + r, j + c);
            float& to = g.c[(i + r) * g.c_row + j + c];
            to = e.alpha * sum(sums[r][c]) + (e.init == nullptr ? 0.0f : e.beta * *e.init);
        }
    }
}

// Computes kRows rows of the columns [begin, end).
template <int kRows, class B>
void dots_of_halves(const Gemm<float, B>& g, int64_t i, int64_t begin, int64_t end) {
    constexpr int kColumns = 8 / kRows;
    int64_t j = begin;
    for (; j + kColumns <= end; j += kColumns) dots_of_halves<kRows, kColumns>(g, i, j);
    for (; j < end; ++j) dots_of_halves<kRows, 1>(g, i, j);
}

template <class B>
void dots_of_halves(const Gemm<float, B>& g, int64_t begin, int64_t end) {
    int64_t i = 0;
    for (; i + 4 <= g.m; i += 4) dots_of_halves<4>(g, i, begin, end);
    for (; i + 2 <= g.m; i += 2) dots_of_halves<2>(g, i, begin, end);
    if (i < g.m) dots_of_halves<1>(g, i, begin, end);
}

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
