// The matrix product of integers. Included by gemm.cpp only.
//
// All arithmetic is unsigned: in two's complement the product of signed integers has the same bits, and unsigned products
// wrap around without overflow. Products of 8-bit numbers are added in 16 bits, for which processors have a multiplication.
#pragma once

#include <type_traits>

#include "cpu/contiguous.h"
#include "cpu/gemm.h"
#include "cpu/kernels/gemm_stream.h"
#include "cpu/kernels/simd.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

template <class T>
struct IntegerProduct {
    using Sum = std::conditional_t<sizeof(T) == 1, uint16_t, T>;
    using Wide =
        std::conditional_t<sizeof(T) < 4, uint32_t, T>;  // operators would make narrower types signed
    static constexpr int kL = kLanes<Sum>;
    static constexpr int kRows = 4, kVectors = kRegisters / 8;
    // A panel of b, kDepth steps of kVectors vectors, fits in the first-level cache.
    static constexpr int64_t kDepth = 64, kPanel = kDepth * kVectors * kL;

    // The matrices of one product.
    const T *a, *b, *init;
    T* c;
    const IntegerGemm& g;

    IntegerProduct(const IntegerGemm& all, int64_t batch)
        : a(static_cast<const T*>(all.a) + batch * all.a_batch),
          b(static_cast<const T*>(all.b) + batch * all.b_batch),
          init(all.init == nullptr ? nullptr : static_cast<const T*>(all.init) + batch * all.init_batch),
          c(static_cast<T*>(all.c) + batch * all.m * all.n),
          g(all) {}

    /// Returns the term beta * init that element (i, j) of c contains.
    Wide addend(int64_t i, int64_t j) const {
        if (init == nullptr) return 0;
        return static_cast<Wide>(static_cast<Wide>(g.beta) *
                                 static_cast<Wide>(init[i * g.init_row + j * g.init_col]));
    }
    static Wide product(T x, T y) { return static_cast<Wide>(x) * static_cast<Wide>(y); }

    /// Computes rows [first, last) of c. The choice of the loop depends only on the shape and the strides of the whole
    /// product, not on `first` and `last`.
    void rows(int64_t first, int64_t last, Sum* panel) const {
        if (g.m >= kRows && g.n > 1) return by_panels(first, last, panel);
        for (int64_t i = first; i < last; ++i) {
            if (g.a_col == 1 && g.b_row == 1) by_dots(i);
            else by_steps(i);
        }
    }

    /// Computes each element of row i of c as the dot product of a row of a and a column of b, whose elements are
    /// adjacent in memory.
    void by_dots(int64_t i) const {
        const T* x = a + i * g.a_row;
        for (int64_t j = 0; j < g.n; ++j) {
            const T* y = b + j * g.b_col;
            T sum = 0;
            for (int64_t k = 0; k < g.k; ++k) sum = static_cast<T>(sum + product(x[k], y[k]));
            c[i * g.n + j] = static_cast<T>(addend(i, j) + product(static_cast<T>(g.alpha), sum));
        }
    }

    /// Computes row i of c by adding multiples of the rows of b, one row after the other.
    void by_steps(int64_t i) const {
        T* out = c + i * g.n;
        for (int64_t j = 0; j < g.n; ++j) out[j] = static_cast<T>(addend(i, j));
        for (int64_t k = 0; k < g.k; ++k) {
            const T x = static_cast<T>(product(static_cast<T>(g.alpha), a[i * g.a_row + k * g.a_col]));
            const T* y = b + k * g.b_row;
            if (g.b_col == 1) {
                for (int64_t j = 0; j < g.n; ++j) out[j] = static_cast<T>(out[j] + product(x, y[j]));
            } else {
                for (int64_t j = 0; j < g.n; ++j)
                    out[j] = static_cast<T>(out[j] + product(x, y[j * g.b_col]));
            }
        }
    }

    /// Copies panels of b, and multiplies blocks of rows of a by each panel. While a block is multiplied by a panel,
    /// its results stay in registers.
    void by_panels(int64_t first, int64_t last, Sum* panel) const {
        for (int64_t k0 = 0; k0 == 0 || k0 < g.k; k0 += kDepth) {
            const int64_t depth = g.k - k0 < kDepth ? g.k - k0 : kDepth;
            for (int64_t j0 = 0; j0 < g.n;) {
                const int64_t left = g.n - j0;
                if (left > 2 * kL && kVectors == 4)
                    j0 += by_panel<kVectors>(first, last, panel, j0, k0, depth);
                else if (left > kL) j0 += by_panel<2>(first, last, panel, j0, k0, depth);
                else j0 += by_panel<1>(first, last, panel, j0, k0, depth);
            }
        }
    }

    template <int kV>
    int64_t by_panel(int64_t first, int64_t last, Sum* panel, int64_t j0, int64_t k0, int64_t depth) const {
        constexpr int64_t kWidth = kV * kL;
        const int64_t columns = g.n - j0 < kWidth ? g.n - j0 : kWidth;
        for (int64_t k = 0; k < depth; ++k) {
            const T* y = b + (k0 + k) * g.b_row + j0 * g.b_col;
            Sum* to = panel + k * kWidth;
            if (g.b_col == 1) {
                for (int64_t j = 0; j < columns; ++j) to[j] = y[j];
            } else {
                for (int64_t j = 0; j < columns; ++j) to[j] = y[j * g.b_col];
            }
            for (int64_t j = columns; j < kWidth; ++j) to[j] = 0;
        }
        int64_t i = first;
        for (; i + kRows <= last; i += kRows) tile<kRows, kV>(i, panel, j0, columns, k0, depth);
        for (; i < last; ++i) tile<1, kV>(i, panel, j0, columns, k0, depth);
        return columns;
    }

    template <int kR, int kV>
    void tile(int64_t i, const Sum* panel, int64_t j0, int64_t columns, int64_t k0, int64_t depth) const {
        Vec<Sum> sums[kR][kV] = {};
        const T* x = a + i * g.a_row + k0 * g.a_col;
        for (int64_t k = 0; k < depth; ++k, x += g.a_col, panel += kV * kL) {
#pragma GCC unroll 4
            for (int r = 0; r < kR; ++r) {
                const Vec<Sum> factor = broadcast<Sum>(x[r * g.a_row]);
#pragma GCC unroll 4
                for (int v = 0; v < kV; ++v) sums[r][v] += factor * load(panel + v * kL);
            }
        }
        Sum row[kV * kL];
        for (int r = 0; r < kR; ++r) {
            for (int v = 0; v < kV; ++v) store(row + v * kL, sums[r][v]);
            T* out = c + (i + r) * g.n + j0;
            for (int64_t j = 0; j < columns; ++j) {
                const Wide before = k0 > 0 ? static_cast<Wide>(out[j]) : addend(i + r, j0 + j);
                out[j] = static_cast<T>(before + product(static_cast<T>(g.alpha), static_cast<T>(row[j])));
            }
        }
    }
};

template <class T>
void integer_product(KernelContext& ctx, const IntegerGemm& g) {
    using Product = IntegerProduct<T>;
    constexpr int64_t kFlopsPerThread = 1 << 18, kTogether = 64;
    const int64_t rows = g.count * g.m, work = g.n * g.k + 1,
                  fit = ceil_div(rows, max(kTogether, kFlopsPerThread / work)),
                  workers = max(1, min(num_threads(), fit));
    auto* panels = scratch<typename Product::Sum>(ctx, workers * Product::kPanel);
    parallel_for(0, workers, 1, [&](int64_t from, int64_t to) {
        for (int64_t w = from; w < to; ++w) {
            for (int64_t row = rows * w / workers, end = rows * (w + 1) / workers; row < end;) {
                const int64_t batch = row / g.m, first = row % g.m, count = min(g.m - first, end - row);
                Product(g, batch).rows(first, first + count, panels + w * Product::kPanel);
                row += count;
            }
        }
    });
}

void integer(KernelContext& ctx, const IntegerGemm& g, DType dtype) {
    switch (itemsize(dtype)) {
        case 1: return integer_product<uint8_t>(ctx, g);
        case 2: return integer_product<uint16_t>(ctx, g);
        case 4: return integer_product<uint32_t>(ctx, g);
        default: return integer_product<uint64_t>(ctx, g);
    }
}

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
