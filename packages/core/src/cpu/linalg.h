// Dense linear algebra with LAPACK. All functions process batches of matrices, and their outputs are row-major.
// `info` is LAPACK's INFO: an int32 for each matrix, which is 0 if the computation succeeded. Pivots are int32 and
// count from 1, as in LAPACK.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

// --- factorizations: cpu/linalg/factorization.cpp ---

/// Factorizes A = L L^H. Reads A's lower triangle only.
void linalg_cholesky(KernelContext& ctx, const View& factor, const View& info, const View& a);
/// Factorizes A = P L U. L and U are stored in one matrix, without L's diagonal of ones.
void linalg_lu(KernelContext& ctx, const View& lu, const View& pivots, const View& info, const View& a);
/// Factorizes A = L D L^T, or L D L^H if `hermitian` is true (Bunch and Kaufman, 1977). Reads A's lower triangle only.
void linalg_ldl(KernelContext& ctx, const View& ld, const View& pivots, const View& info, const View& a,
                bool hermitian);
void linalg_ldl_solve(KernelContext& ctx, const View& out, const View& ld, const View& pivots, const View& b,
                      bool hermitian);

/// Converts pivots, which describe successive exchanges of rows, to a permutation: order[i] is the row that the
/// exchanges move to position i. Raises RuntimeError if a pivot is out of range.
void pivots_to_order(KernelContext& ctx, const View& order, const View& pivots, int64_t rows);

// --- orthogonal factors: cpu/linalg/orthogonal.cpp ---

/// Factorizes the m by n matrices A = Q R. q is undefined if it is not requested. Otherwise q has either min(m, n) or m
/// columns.
void linalg_qr(KernelContext& ctx, const View& q, const View& r, const View& a);
/// Computes the Householder reflectors of a QR factorization. R is in the upper triangle of `reflectors`, and below
/// it are the vectors v without their leading ones. `tau` holds the factor of each reflector.
void geqrf(KernelContext& ctx, const View& reflectors, const View& tau, const View& a);
/// Computes the first columns of the product of the reflectors, as many as q has.
void householder_product(KernelContext& ctx, const View& q, const View& reflectors, const View& tau);
/// Multiplies `other` from the left or the right by the product of the reflectors, or by its conjugate transpose.
void ormqr(KernelContext& ctx, const View& out, const View& reflectors, const View& tau, const View& other,
           bool left, bool transpose);

// --- systems of equations: cpu/linalg/systems.cpp ---

// `factors` stores the factors of A = L U P in one row-major matrix, where L is lower triangular and U has ones on
// its diagonal. These are LAPACK's factors of the transpose. The solver, the inverse and the determinant return
// these factors, and their gradients use the factors to solve further systems.

/// Solves A X = B if `left` is true, otherwise X A = B.
void linalg_solve(KernelContext& ctx, const View& x, const View& info, const View& factors,
                  const View& pivots, const View& a, const View& b, bool left);
/// Solves A X = B, or X A = B, like linalg_solve, but with given factors of A. If `transposed` is true, A is replaced
/// by its conjugate transpose.
void linalg_solve_again(KernelContext& ctx, const View& x, const View& a, const View& factors,
                        const View& pivots, const View& b, bool left, bool transposed);
void linalg_solve_triangular(KernelContext& ctx, const View& x, const View& a, const View& b, bool upper,
                             bool left, bool unitriangular);
void linalg_inv(KernelContext& ctx, const View& inverse, const View& info, const View& a);
void linalg_det(KernelContext& ctx, const View& det, const View& factors, const View& pivots, const View& a);
/// Computes the sign of the determinant and the logarithm of the determinant's absolute value. The sign of a complex
/// determinant is determinant / abs(determinant).
void linalg_slogdet(KernelContext& ctx, const View& sign, const View& logabsdet, const View& factors,
                    const View& pivots, const View& a);
/// Computes the least-squares solution of A X = B, and the rank and singular values if the driver computes them.
/// `driver` is 0 for gels, 1 for gelsy, 2 for gelsd, and 3 for gelss.
void linalg_lstsq(KernelContext& ctx, const View& solution, const View& rank, const View& singular_values,
                  const View& a, const View& b, double rcond, int64_t driver);

// --- spectra: cpu/linalg/spectrum.cpp ---

/// Computes the eigenvalues, in ascending order, and the eigenvectors of a symmetric or Hermitian matrix. Reads one
/// triangle only.
void linalg_eigh(KernelContext& ctx, const View& values, const View& vectors, const View& a, bool upper,
                 bool vectors_wanted);
/// Computes the eigenvalues and eigenvectors of any square matrix. Both are complex.
void linalg_eig(KernelContext& ctx, const View& values, const View& vectors, const View& a,
                bool vectors_wanted);
/// Factorizes A = U diag(S) V^H, with singular values in descending order. u and vh are empty if only singular values
/// are requested.
void linalg_svd(KernelContext& ctx, const View& u, const View& s, const View& vh, const View& a, bool full,
                bool vectors_wanted);

}  // namespace rushlight::cpu
