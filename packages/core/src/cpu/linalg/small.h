// Factorizations of matrices so small that a call of LAPACK takes longer than the computation. The algorithms are
// LAPACK's unblocked ones, with the same pivots and the same INFO.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "cpu/linalg/matrices.h"

namespace rushlight::cpu {

inline constexpr int64_t kSmallMatrix = 16;

// Returns the magnitude by which pivots are compared: |re| + |im| for complex numbers, as in LAPACK.
template <class T>
Real<T> pivot_size(const T& x) {
    if constexpr (kIsComplex<T>) return std::abs(x.re) + std::abs(x.im);
    else return std::abs(x);
}

/// Factorizes an m by n matrix as P L U in place. Element (i, j) is at i * row + j * column, and `row` or `column` is 1. In step j, row j is
/// exchanged with the row whose number, counted from 1, is written to exchanged[j]. Returns 0, or the position, counted
/// from 1, of the first zero on U's diagonal.
template <class T>
int64_t small_lu(int64_t m, int64_t n, T* a, int64_t row, int64_t column, int32_t* exchanged) {
    int64_t singular = 0;
    for (int64_t j = 0; j < std::min(m, n); ++j) {
        T* diagonal = a + j * (row + column);
        int64_t best = j;
        Real<T> size = pivot_size(*diagonal);
        for (int64_t i = j + 1; i < m; ++i) {
            const Real<T> other = pivot_size(a[i * row + j * column]);
            if (other > size) {
                best = i;
                size = other;
            }
        }
        exchanged[j] = static_cast<int32_t>(best + 1);
        if (size == 0) {
            if (!singular) singular = j + 1;
            continue;
        }
        if (best != j)
            for (int64_t c = 0; c < n; ++c) std::swap(a[j * row + c * column], a[best * row + c * column]);
        if (size >= std::numeric_limits<Real<T>>::min()) {
            const T scale = T(1) / *diagonal;
            for (int64_t i = j + 1; i < m; ++i) a[i * row + j * column] = a[i * row + j * column] * scale;
        } else {  // the reciprocal of a subnormal number, and of the square of its magnitude, may be infinite
            const T up(std::ldexp(Real<T>(1), sizeof(Real<T>) == 4 ? 100 : 900)), pivot = *diagonal * up;
            for (int64_t i = j + 1; i < m; ++i)
                a[i * row + j * column] = a[i * row + j * column] * up / pivot;
        }
        // Runs along adjacent elements: columns if `row` is 1, otherwise rows.
        const T *left = a + j * column, *top = a + j * row;
        if (row == 1) {
            for (int64_t c = j + 1; c < n; ++c) {
                T* const own = a + c * column;
                const T factor = top[c * column];
#pragma omp simd
                for (int64_t i = j + 1; i < m; ++i) own[i] = own[i] - left[i] * factor;
            }
        } else {
            for (int64_t i = j + 1; i < m; ++i) {
                T* const own = a + i * row;
                const T factor = left[i * row];
#pragma omp simd
                for (int64_t c = j + 1; c < n; ++c) own[c] = own[c] - factor * top[c];
            }
        }
    }
    return singular;
}

/// Solves the system of small_solve for kWidth columns, by the same operations. Each x[i] holds row i of the columns, so that
/// every operation is one of vectors.
template <int64_t kWidth, class T>
void small_solve_rows(bool transposed, int64_t n, const T* a, const int32_t* exchanged, T (*x)[kWidth]) {
    const auto subtract = [x](int64_t from, T factor, int64_t row) {
#pragma omp simd
        for (int64_t c = 0; c < kWidth; ++c) x[from][c] = x[from][c] - factor * x[row][c];
    };
    const auto divide = [x](int64_t row, T by) {
#pragma omp simd
        for (int64_t c = 0; c < kWidth; ++c) x[row][c] = x[row][c] / by;
    };
    if (!transposed) {
        for (int64_t i = 0; i < n; ++i) std::swap(x[i], x[exchanged[i] - 1]);
        for (int64_t j = 0; j < n; ++j)
            for (int64_t i = j + 1; i < n; ++i) subtract(i, a[i + j * n], j);
        for (int64_t j = n - 1; j >= 0; --j) {
            divide(j, a[j + j * n]);
            for (int64_t i = 0; i < j; ++i) subtract(i, a[i + j * n], j);
        }
    } else {
        for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < i; ++j) subtract(i, a[j + i * n], j);
            divide(i, a[i + i * n]);
        }
        for (int64_t i = n - 1; i >= 0; --i)
            for (int64_t j = i + 1; j < n; ++j) subtract(i, a[j + i * n], j);
        for (int64_t i = n - 1; i >= 0; --i) std::swap(x[i], x[exchanged[i] - 1]);
    }
}

/// Solves the system of small_solve for kWidth columns.
template <int64_t kWidth, class T>
void small_solve_columns(bool transposed, int64_t n, const T* a, const int32_t* exchanged, T* x) {
    T rows[kSmallMatrix][kWidth];
    for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < kWidth; ++c) rows[i][c] = x[c * n + i];
    small_solve_rows<kWidth>(transposed, n, a, exchanged, rows);
    for (int64_t c = 0; c < kWidth; ++c)
        for (int64_t i = 0; i < n; ++i) x[c * n + i] = rows[i][c];
}

/// Solves A X = B, or A^T X = B if `transposed` is true, where small_lu has factorized the column-major n by n matrix
/// A. `x` holds the k columns of B, which are replaced by those of X.
template <class T>
void small_solve(bool transposed, int64_t n, int64_t k, const T* a, const int32_t* exchanged, T* x) {
    for (; k >= 8; k -= 8, x += 8 * n) small_solve_columns<8>(transposed, n, a, exchanged, x);
    for (; k >= 4; k -= 4, x += 4 * n) small_solve_columns<4>(transposed, n, a, exchanged, x);
    for (; k > 0; --k, x += n) {
        if (!transposed) {
            for (int64_t i = 0; i < n; ++i) std::swap(x[i], x[exchanged[i] - 1]);
            for (int64_t j = 0; j < n; ++j)
                for (int64_t i = j + 1; i < n; ++i) x[i] = x[i] - a[i + j * n] * x[j];
            for (int64_t j = n - 1; j >= 0; --j) {
                x[j] = x[j] / a[j + j * n];
                for (int64_t i = 0; i < j; ++i) x[i] = x[i] - a[i + j * n] * x[j];
            }
        } else {
            for (int64_t i = 0; i < n; ++i) {
                for (int64_t j = 0; j < i; ++j) x[i] = x[i] - a[j + i * n] * x[j];
                x[i] = x[i] / a[i + i * n];
            }
            for (int64_t i = n - 1; i >= 0; --i)
                for (int64_t j = i + 1; j < n; ++j) x[i] = x[i] - a[j + i * n] * x[j];
            for (int64_t i = n - 1; i >= 0; --i) std::swap(x[i], x[exchanged[i] - 1]);
        }
    }
}

/// Overwrites the lower triangle of a row-major matrix with the matrix's lower Cholesky factor. Returns 0, or the order
/// of the first leading minor that is not positive.
template <class T>
int64_t small_cholesky(int64_t n, T* a) {
    for (int64_t j = 0; j < n; ++j) {
        T* own = a + j * n;
        Real<T> rest = real_part(own[j]);
        for (int64_t c = 0; c < j; ++c) rest -= real_part(own[c] * conjugate(own[c]));
        if (!(rest > 0)) return j + 1;
        const Real<T> diagonal = std::sqrt(rest);
        own[j] = T(diagonal);
        for (int64_t i = j + 1; i < n; ++i) {
            T sum = a[i * n + j];
            for (int64_t c = 0; c < j; ++c) sum = sum - a[i * n + c] * conjugate(own[c]);
            a[i * n + j] = sum / T(diagonal);
        }
    }
    return 0;
}

/// Applies the reflector I - tau v v^T to an m by n matrix. The first element of v is 1 and is not stored; the others are
/// `step` elements apart. Rows of the matrix are `row` elements apart. m is at most kSmallMatrix.
template <class T>
void small_reflect(int64_t m, int64_t n, const T* v, int64_t step, T tau, T* a, int64_t row) {
    if (tau == T(0)) return;
    T sums[kSmallMatrix];
    for (int64_t c = 0; c < n; ++c) sums[c] = a[c];
    for (int64_t i = 1; i < m; ++i)
#pragma omp simd
        for (int64_t c = 0; c < n; ++c) sums[c] += v[i * step] * a[i * row + c];
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) {
        sums[c] *= tau;
        a[c] -= sums[c];
    }
    for (int64_t i = 1; i < m; ++i)
#pragma omp simd
        for (int64_t c = 0; c < n; ++c) a[i * row + c] -= v[i * step] * sums[c];
}

/// Computes the QR decomposition of a row-major m by n matrix in place: R in the upper triangle, and below it the vectors of
/// k = min(m, n) reflectors, whose factors are written to `tau`. The signs are those of LAPACK. Returns false if squares
/// may overflow or underflow, or if an element is not finite; the matrix is then undefined.
template <class T>
bool small_qr(int64_t m, int64_t n, T* a, T* tau) {
    constexpr double kLeast = 1e-140, kMost = 1e140;
    for (int64_t j = 0; j < std::min(m, n); ++j) {
        double squares = 0, largest = 0;
        for (int64_t i = j + 1; i < m; ++i) {
            const double x = static_cast<double>(a[i * n + j]);
            squares += x * x;
            largest = std::max(largest, std::abs(x));
        }
        tau[j] = T(0);
        if (squares == 0 && largest == 0) continue;  // the column has its final form
        const double first = static_cast<double>(a[j * n + j]);
        if (!(largest >= kLeast && squares <= kMost * kMost && std::abs(first) <= kMost)) return false;
        const double diagonal = -std::copysign(std::sqrt(first * first + squares), first);
        const double scale = 1 / (first - diagonal);
        tau[j] = static_cast<T>((diagonal - first) / diagonal);
        a[j * n + j] = static_cast<T>(diagonal);
        for (int64_t i = j + 1; i < m; ++i)
            a[i * n + j] = static_cast<T>(static_cast<double>(a[i * n + j]) * scale);
        small_reflect(m - j, n - j - 1, a + j * n + j, n, tau[j], a + j * n + j + 1, n);
    }
    return true;
}

/// Computes the first `columns` columns of the orthogonal matrix from the k reflectors that small_qr has computed.
template <class T>
void small_q(int64_t m, int64_t columns, int64_t k, const T* reflectors, int64_t step, const T* tau, T* q) {
    std::fill_n(q, m * columns, T(0));
    for (int64_t i = 0; i < columns; ++i) q[i * columns + i] = T(1);
    for (int64_t j = k - 1; j >= 0; --j)
        small_reflect(m - j, columns - j, reflectors + j * step + j, step, tau[j], q + j * columns + j,
                      columns);
}

}  // namespace rushlight::cpu
