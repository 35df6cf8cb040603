// Dense linear algebra, by LAPACK. All work on batches of matrices; outputs are row-major. `info` is int32, one for each
// matrix, and 0 where all went well: LAPACK's INFO. Pivots are int32 and count from 1, as LAPACK's.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

// --- factorizations: cpu/linalg/factorization.cpp ---

/// A = L L^H from A's lower triangle.
void linalg_cholesky(KernelContext& ctx, const View& factor, const View& info, const View& a);
/// A = P L U: both triangles in one matrix, L without its diagonal of ones.
void linalg_lu(KernelContext& ctx, const View& lu, const View& pivots, const View& info, const View& a);
/// A = L D L^T, or L D L^H, from A's lower triangle (Bunch and Kaufman, 1977).
void linalg_ldl(KernelContext& ctx, const View& ld, const View& pivots, const View& info, const View& a,
                bool hermitian);
void linalg_ldl_solve(KernelContext& ctx, const View& out, const View& ld, const View& pivots, const View& b,
                      bool hermitian);

/// Where each of `rows` rows comes from when rows are exchanged in turn, as `pivots` say. RuntimeError where one is out of range.
void pivots_to_order(KernelContext& ctx, const View& order, const View& pivots, int64_t rows);

// --- orthogonal factors: cpu/linalg/orthogonal.cpp ---

/// A = Q R. q is undefined if it is not requested; it has A's columns, or as many as rows.
void linalg_qr(KernelContext& ctx, const View& q, const View& r, const View& a);
/// Reflectors: R in the upper triangle, below it the vectors v without their leading ones; tau.
void geqrf(KernelContext& ctx, const View& reflectors, const View& tau, const View& a);
/// The first columns of the product of the reflectors.
void householder_product(KernelContext& ctx, const View& q, const View& reflectors, const View& tau);
/// The product of the reflectors, or its transpose, times `other`, from the left or the right.
void ormqr(KernelContext& ctx, const View& out, const View& reflectors, const View& tau, const View& other,
           bool left, bool transpose);

// --- systems of equations: cpu/linalg/systems.cpp ---

// `factors` is a row-major A = L U P, where L is lower triangular and U has ones on its diagonal: LAPACK's factors of the
// transpose. The solver, the inverse and the determinant return these factors, and gradients solve with them again.

/// A X = B, or X A = B.
void linalg_solve(KernelContext& ctx, const View& x, const View& info, const View& factors,
                  const View& pivots, const View& a, const View& b, bool left);
/// Solves the same equations, or those with the conjugate transpose of A, with the factors of A.
void linalg_solve_again(KernelContext& ctx, const View& x, const View& a, const View& factors,
                        const View& pivots, const View& b, bool left, bool transposed);
void linalg_solve_triangular(KernelContext& ctx, const View& x, const View& a, const View& b, bool upper,
                             bool left, bool unitriangular);
void linalg_inv(KernelContext& ctx, const View& inverse, const View& info, const View& a);
void linalg_det(KernelContext& ctx, const View& det, const View& factors, const View& pivots, const View& a);
/// The sign of the determinant, or its direction, and the logarithm of its absolute value.
void linalg_slogdet(KernelContext& ctx, const View& sign, const View& logabsdet, const View& factors,
                    const View& pivots, const View& a);
/// The least squares solution of A X = B; rank and singular values where the driver finds them. Drivers are gels, gelsy, gelsd
/// and gelss, from 0 on.
void linalg_lstsq(KernelContext& ctx, const View& solution, const View& rank, const View& singular_values,
                  const View& a, const View& b, double rcond, int64_t driver);

// --- spectra: cpu/linalg/spectrum.cpp ---

/// Eigenvalues in rising order and eigenvectors of a symmetric matrix, of which one triangle is read.
void linalg_eigh(KernelContext& ctx, const View& values, const View& vectors, const View& a, bool upper,
                 bool vectors_wanted);
/// Eigenvalues and eigenvectors of any square matrix; both are complex.
void linalg_eig(KernelContext& ctx, const View& values, const View& vectors, const View& a,
                bool vectors_wanted);
/// A = U diag(S) V^H, singular values in falling order. u and vh are empty if only values are requested.
void linalg_svd(KernelContext& ctx, const View& u, const View& s, const View& vh, const View& a, bool full,
                bool vectors_wanted);

}  // namespace rushlight::cpu
