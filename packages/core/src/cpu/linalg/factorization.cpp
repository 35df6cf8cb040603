#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "cpu/contiguous.h"
#include "cpu/linalg.h"
#include "cpu/linalg/matrices.h"
#include "cpu/linalg/small.h"

namespace rushlight::cpu {
namespace {

// Replaces the lower triangle of `l` by the lower Cholesky factor. Returns LAPACK's INFO.
template <class T>
int64_t factor_positive(int64_t n, T* l) {
    if (n <= kSmallMatrix) return small_cholesky(n, l);
    lapack::Int result;
    Lapack<T>::potrf('U', n, l, n, result.out());  // LAPACK sees the transpose of L
    if (result.get() != 0) return result.get();
    // OpenBLAS does not report NaN during the factorization, but a NaN stays on the diagonal.
    for (int64_t i = 0; i < n; ++i)
        if (const T d = l[i * (n + 1)]; d != d) return i + 1;
    return 0;
}

}  // namespace

void linalg_cholesky(KernelContext&, const View& factor, const View& info, const View& a) {
    if (factor.numel == 0) return clear(info);
    with_scalar("linalg.cholesky", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), out(factor);
        const int64_t n = in.rows;
        for_matrices(count_matrices(a), static_cast<double>(n * n * n) / 3, [&](int64_t begin, int64_t end) {
            for (int64_t b = begin; b < end; ++b) {
                T* l = out.at(b);
                for (int64_t i = 0; i < n; ++i) {
                    copy_matrix(l + i * n, n, 1, in.at(b) + i * in.row_stride, in.row_stride,
                                in.column_stride, 1, i + 1);
                    std::fill_n(l + i * n + i + 1, n - i - 1, T(0));
                }
                info.as<int32_t>()[b] = static_cast<int32_t>(factor_positive(n, l));
            }
        });
    });
}

void linalg_lu(KernelContext&, const View& lu, const View& pivots, const View& info, const View& a) {
    if (lu.numel == 0) return clear(info);
    with_scalar("linalg.lu_factor", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), out(lu);
        const int64_t m = in.rows, n = in.columns, k = std::min(m, n);
        const double work = static_cast<double>(m * n * k) * 2 / 3;
        for_matrices(count_matrices(a), work, [&](int64_t begin, int64_t end) {
            const bool small = std::max(m, n) <= kSmallMatrix;
            const Buffer<T> columns(small ? 0 : m * n);
            const LapackInts order(small ? 0 : k);
            for (int64_t b = begin; b < end; ++b) {
                int32_t* exchanged = pivots.as<int32_t>() + b * k;
                lapack::Int result;
                int64_t singular = 0;
                if (small) {
                    in.to_rows(b, out.at(b), n);
                    singular = small_lu(m, n, out.at(b), n, 1, exchanged);
                } else {
                    in.to_columns(b, columns.data(), m);
                    Lapack<T>::getrf(m, n, columns.data(), m, order.data(), result.out());
                    out.from_columns(b, columns.data(), m);
                    order.store(exchanged, k);
                    singular = result.get();
                }
                info.as<int32_t>()[b] = static_cast<int32_t>(singular);
            }
        });
    });
}

void linalg_ldl(KernelContext&, const View& ld, const View& pivots, const View& info, const View& a,
                bool hermitian) {
    if (ld.numel == 0) return clear(info);
    with_scalar("linalg.ldl_factor", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), out(ld);
        const int64_t n = in.rows;
        auto& factor = kIsComplex<T> && hermitian ? Lapack<T>::hetrf : Lapack<T>::sytrf;
        for_matrices(count_matrices(a), static_cast<double>(n * n * n) / 3, [&](int64_t begin, int64_t end) {
            const Buffer<T> columns(n * n);
            const LapackInts order(n);
            lapack::Int result;
            T size{};
            factor('L', n, columns.data(), n, order.data(), &size, int64_t{-1}, result.out());
            const int64_t lwork = workspace_size(size);
            const Buffer<T> work(lwork);
            for (int64_t b = begin; b < end; ++b) {
                in.to_columns(b, columns.data(), n);
                lapack::Int done;
                factor('L', n, columns.data(), n, order.data(), work.data(), lwork, done.out());
                for (int64_t j = 1; j < n; ++j) std::fill_n(columns.data() + j * n, j, T(0));
                out.from_columns(b, columns.data(), n);
                order.store(pivots.as<int32_t>() + b * n, n);
                info.as<int32_t>()[b] = static_cast<int32_t>(done.get());
            }
        });
    });
}

namespace {

// Checks pivots, because LAPACK does not check them. A pivot is a row counted from 1; a 2x2 block has a pair of
// negative pivots.
void check_ldl_pivots(const int32_t* pivots, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const bool pair = pivots[i] < 0;
        bool fits = pivots[i] != 0 && std::abs(int64_t{pivots[i]}) <= n;
        if (pair) fits = fits && ++i < n && pivots[i] < 0 && -int64_t{pivots[i]} <= n;
        RL_CHECK(fits, throw_runtime,
                 "linalg.ldl_solve(pivots): must be pivots that ldl_factor returned: row numbers from 1 to "
                 "%lld, or pairs of negative row numbers",
                 (long long)n);
    }
}

}  // namespace

void linalg_ldl_solve(KernelContext& ctx, const View& out, const View& ld, const View& pivots, const View& b,
                      bool hermitian) {
    if (out.numel == 0) return;
    const View order = contiguous_in(ctx, pivots);
    with_scalar("linalg.ldl_solve", ld.dtype, [&]<class T>(T) {
        const Matrices<T> factors(ld), right(b), x(out);
        const int64_t n = right.rows, k = right.columns;
        auto& solve = kIsComplex<T> && hermitian ? Lapack<T>::hetrs : Lapack<T>::sytrs;
        for_matrices(count_matrices(out), static_cast<double>(2 * n * n * k),
                     [&](int64_t begin, int64_t end) {
                         const Buffer<T> columns(n * n), rows(n * k);
                         const LapackInts ipiv(n);
                         for (int64_t i = begin; i < end; ++i) {
                             factors.to_columns(i, columns.data(), n);
                             right.to_columns(i, rows.data(), n);
                             check_ldl_pivots(order.as<int32_t>() + i * n, n);
                             ipiv.load(order.as<int32_t>() + i * n, n);
                             lapack::Int result;
                             solve('L', n, k, columns.data(), n, ipiv.data(), rows.data(), n, result.out());
                             x.from_columns(i, rows.data(), n);
                         }
                     });
    });
}

void pivots_to_order(KernelContext& ctx, const View& order, const View& pivots, int64_t rows) {
    if (order.numel == 0) return;
    const auto* exchanged = contiguous_in(ctx, pivots).as<int32_t>();
    const int64_t k = pivots.size(-1);
    for (int64_t b = 0; b < order.numel / rows; ++b, exchanged += k) {
        auto* positions = order.as<int64_t>() + b * rows;
        std::iota(positions, positions + rows, int64_t{0});
        for (int64_t i = 0; i < k; ++i) {
            RL_CHECK(exchanged[i] >= 1 && exchanged[i] <= rows, throw_runtime,
                     "lu_unpack(LU_pivots): must be between 1 and the number of rows, %lld, found %d",
                     (long long)rows, exchanged[i]);
            std::swap(positions[i], positions[exchanged[i] - 1]);
        }
    }
}

}  // namespace rushlight::cpu
