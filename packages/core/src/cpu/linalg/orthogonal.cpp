// QR decompositions. They are computed by LAPACK's LQ decomposition of the transpose: Note [Row-major LAPACK].
#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/linalg.h"
#include "cpu/linalg/matrices.h"
#include "cpu/linalg/small.h"

namespace rushlight::cpu {
namespace {

template <class T>
void zero_below_diagonal(T* r, int64_t rows, int64_t columns) {
    for (int64_t i = 1; i < rows; ++i) std::fill_n(r + i * columns, std::min(i, columns), T(0));
}

template <class T>
void identity(T* q, int64_t rows, int64_t columns) {
    std::fill_n(q, rows * columns, T(0));
    for (int64_t i = 0; i < std::min(rows, columns); ++i) q[i * columns + i] = T(1);
}

// Replaces -0.0 by 0.0. LAPACK reads the sign of a real part of zero, so -0.0 would change the signs of Q and R.
template <class T>
void remove_negative_zeros(T* a, int64_t count) {
    for (int64_t i = 0; i < count; ++i) a[i] = a[i] + T(0);
}

// Writes Q, unless `q` is null, and R of a small matrix. `width` is the number of columns of Q. Returns false if LAPACK is
// needed.
template <class T>
bool decompose_small(const Matrices<T>& in, int64_t b, T* q, int64_t width, T* r, int64_t r_rows) {
    T a[kSmallMatrix * kSmallMatrix], tau[kSmallMatrix];
    const int64_t m = in.rows, n = in.columns;
    in.to_rows(b, a, n);
    remove_negative_zeros(a, m * n);
    if (!small_qr(m, n, a, tau)) return false;
    std::copy_n(a, r_rows * n, r);
    zero_below_diagonal(r, r_rows, n);
    if (q != nullptr) small_q(m, width, std::min(m, n), a, n, tau, q);
    return true;
}

}  // namespace

void linalg_qr(KernelContext&, const View& q, const View& r, const View& a) {
    with_scalar("linalg.qr", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), q_out(q), r_out(r);
        const int64_t m = in.rows, n = in.columns, k = std::min(m, n), count = count_matrices(a);
        const bool wanted = q.defined() && q.ndim >= 2;
        const int64_t width = wanted ? q_out.columns : 0;
        if (k == 0) {  // there are no reflectors
            for (int64_t b = 0; wanted && q.numel > 0 && b < count; ++b) identity(q_out.at(b), m, width);
            return clear(r);
        }
        const auto by_lapack = [&](int64_t begin, int64_t end) {
            const Buffer<T> rows(m * n), tau(k);
            lapack::Int unused;
            const Workspace<T> work([&](T* data, int64_t size) {
                Lapack<T>::gelqf(n, m, rows.data(), n, tau.data(), data, size, unused.out());
            });
            const Workspace<T> more([&](T* data, int64_t size) {
                if (wanted)
                    Lapack<T>::orglq(width, m, k, rows.data(), width, tau.data(), data, size, unused.out());
            });
            for (int64_t b = begin; b < end; ++b) {
                in.to_rows(b, rows.data(), n);
                remove_negative_zeros(rows.data(), m * n);
                lapack::Int info;
                Lapack<T>::gelqf(n, m, rows.data(), n, tau.data(), work.data(), work.size(), info.out());
                std::copy_n(rows.data(), r_out.rows * n, r_out.at(b));
                zero_below_diagonal(r_out.at(b), r_out.rows, n);
                if (!wanted) continue;
                // Copies the reflectors to the first k columns of the output, in which orglq computes Q.
                T* made = q_out.at(b);
                copy_matrix(made, width, 1, rows.data(), n, 1, m, k);
                Lapack<T>::orglq(width, m, k, made, width, tau.data(), more.data(), more.size(), info.out());
            }
        };
        for_matrices(count, static_cast<double>(2 * m * n * k), [&](int64_t begin, int64_t end) {
            if constexpr (!kIsComplex<T>) {
                if (std::max(m, n) <= kSmallMatrix) {
                    for (int64_t b = begin; b < end; ++b) {
                        T* const made = wanted ? q_out.at(b) : nullptr;
                        if (!decompose_small(in, b, made, width, r_out.at(b), r_out.rows))
                            by_lapack(b, b + 1);
                    }
                    return;
                }
            }
            by_lapack(begin, end);
        });
    });
}

void geqrf(KernelContext&, const View& reflectors, const View& tau, const View& a) {
    if (reflectors.numel == 0) return;
    with_scalar("geqrf", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), out(reflectors);
        const int64_t m = in.rows, n = in.columns, k = std::min(m, n);
        for_matrices(count_matrices(a), static_cast<double>(2 * m * n * k), [&](int64_t begin, int64_t end) {
            lapack::Int info;
            const Workspace<T> work([&](T* data, int64_t size) {
                Lapack<T>::gelqf(n, m, out.at(0), n, tau.as<T>(), data, size, info.out());
            });
            for (int64_t b = begin; b < end; ++b) {
                T* scale = tau.as<T>() + b * k;
                in.to_rows(b, out.at(b), n);
                remove_negative_zeros(out.at(b), m * n);
                Lapack<T>::gelqf(n, m, out.at(b), n, scale, work.data(), work.size(), info.out());
                for (int64_t i = 0; i < k; ++i) scale[i] = conjugate(scale[i]);
            }
        });
    });
}

void householder_product(KernelContext& ctx, const View& q, const View& reflectors, const View& tau) {
    if (q.numel == 0) return;
    const View scales = contiguous_in(ctx, tau);
    with_scalar("linalg.householder_product", q.dtype, [&]<class T>(T) {
        const Matrices<T> in(reflectors), out(q);
        const int64_t m = in.rows, n = in.columns, k = tau.size(-1);
        for_matrices(count_matrices(q), static_cast<double>(2 * m * n * k), [&](int64_t begin, int64_t end) {
            const Buffer<T> own(k);
            lapack::Int info;
            const Workspace<T> work([&](T* data, int64_t size) {
                Lapack<T>::orglq(n, m, k, out.at(0), n, own.data(), data, size, info.out());
            });
            for (int64_t b = begin; b < end; ++b) {
                in.to_rows(b, out.at(b), n);
                for (int64_t i = 0; i < k; ++i) own[i] = conjugate(scales.as<T>()[b * k + i]);
                Lapack<T>::orglq(n, m, k, out.at(b), n, own.data(), work.data(), work.size(), info.out());
            }
        });
    });
}

void ormqr(KernelContext& ctx, const View& out, const View& reflectors, const View& tau, const View& other,
           bool left, bool transpose) {
    if (out.numel == 0) return;
    const View scales = contiguous_in(ctx, tau);
    with_scalar("ormqr", out.dtype, [&]<class T>(T) {
        const Matrices<T> in(reflectors), given(other), made(out);
        const int64_t m = in.rows, n = in.columns, k = tau.size(-1), rows = given.rows,
                      columns = given.columns;
        const char side = left ? 'R' : 'L', how = !transpose ? 'N' : kIsComplex<T> ? 'C' : 'T';
        for_matrices(count_matrices(out), static_cast<double>(4 * rows * columns * k),
                     [&](int64_t begin, int64_t end) {
                         const Buffer<T> v(m * n), own(k);
                         lapack::Int info;
                         const Workspace<T> work([&](T* data, int64_t size) {
                             Lapack<T>::ormlq(side, how, columns, rows, k, v.data(), n, own.data(),
                                              made.at(0), columns, data, size, info.out());
                         });
                         for (int64_t b = begin; b < end; ++b) {
                             in.to_rows(b, v.data(), n);
                             given.to_rows(b, made.at(b), columns);
                             for (int64_t i = 0; i < k; ++i) own[i] = conjugate(scales.as<T>()[b * k + i]);
                             Lapack<T>::ormlq(side, how, columns, rows, k, v.data(), n, own.data(),
                                              made.at(b), columns, work.data(), work.size(), info.out());
                         }
                     });
    });
}

}  // namespace rushlight::cpu
