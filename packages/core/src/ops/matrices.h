// Checks of the arguments of linear algebra, and errors for matrices that lack a required property.
#pragma once

#include "ops/views.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/transpose.h"

namespace rushlight {

/// Checks that the argument consists of matrices of a dtype that LAPACK supports.
inline void check_matrix(const char* op, const char* argument, const Tensor& t) {
    const DType d = t.dtype();
    RL_CHECK(
        is_differentiable(d) && itemsize(d) >= 4, throw_not_implemented,
        "%s(%s): needs float32, float64, complex64 or complex128, got %s\nhint: convert the tensor first", op,
        argument, name(d));
    RL_CHECK(t.dim() >= 2, throw_runtime, "%s(%s): needs matrices of at least 2 dimensions, got shape %s", op,
             argument, to_string(t.sizes()).c_str());
    for (int64_t d : {-1, -2})
        RL_CHECK(t.size(d) <= INT32_MAX, throw_runtime, "%s(%s): a matrix of shape %s is too large", op,
                 argument, to_string(t.sizes()).c_str());
}

/// Raises RuntimeError if a complex number scales real matrices.
inline void check_weights(const char* op, const Tensor& t, Scalar beta, Scalar alpha) {
    RL_CHECK((!beta.is_complex() && !alpha.is_complex()) || is_complex(t.dtype()), throw_runtime,
             "%s(beta, alpha): a complex number needs complex tensors, got %s", op, name(t.dtype()));
}

inline void check_square_matrix(const char* op, const char* argument, const Tensor& t) {
    check_matrix(op, argument, t);
    RL_CHECK(t.size(-1) == t.size(-2), throw_runtime, "%s(%s): needs square matrices, got shape %s", op,
             argument, to_string(t.sizes()).c_str());
}

inline void check_same_dtype(const char* op, const char* first, const Tensor& a, const char* second,
                             const Tensor& b) {
    RL_CHECK(a.dtype() == b.dtype(), throw_runtime, "%s(%s, %s): must have the same dtype, got %s and %s", op,
             first, second, name(a.dtype()), name(b.dtype()));
}

/// Checks that the pivots are int32, and that there is one row of pivots for each matrix.
inline void check_pivots(const char* op, const Tensor& pivots, const Tensor& factors, const char* argument) {
    RL_CHECK(pivots.dtype() == DType::Int32, throw_runtime, "%s(%s): needs int32, got %s", op, argument,
             name(pivots.dtype()));
    const int64_t k = std::min(factors.size(-1), factors.size(-2));
    IntList batch = factors.sizes().first(static_cast<size_t>(factors.dim() - 2));
    RL_CHECK(pivots.dim() == factors.dim() - 1 && pivots.size(-1) == k &&
                 std::equal(batch.begin(), batch.end(), pivots.sizes().begin()),
             throw_runtime, "%s(%s): needs %lld numbers for each matrix of shape %s, got shape %s", op,
             argument, (long long)k, to_string(factors.sizes()).c_str(), to_string(pivots.sizes()).c_str());
}

/// Returns the sizes before the last two dimensions.
inline IntList batch_of(const Tensor& t) { return t.sizes().first(static_cast<size_t>(t.dim() - 2)); }

/// Expands the matrices to a larger batch, as a view.
Tensor expand_batch(const Tensor& t, IntList batch);

/// Raises LinAlgError for the first matrix whose `info` is not 0. The text is "op: the matrix ..." or "op: matrix 3 of the
/// batch ...", followed by `format`, whose only argument is the value of `info`.
void check_info(const char* op, const Tensor& info, const char* format);

inline constexpr const char* kSingular =
    "is singular: element %lld of the diagonal of its triangular factor is zero";
inline constexpr const char* kNotPositive =
    "is not positive-definite: its leading minor of order %lld is not positive";

}  // namespace rushlight
