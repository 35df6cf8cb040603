#include "bodies/factorization.h"
#include "ops/broadcasting.h"
#include "ops/differentiated.h"
#include "ops/matrices.h"
#include "rushlight/ops/_householder_product.h"
#include "rushlight/ops/_linalg_cholesky.h"
#include "rushlight/ops/_linalg_ldl_factor.h"
#include "rushlight/ops/_linalg_ldl_solve.h"
#include "rushlight/ops/_linalg_lu_factor.h"
#include "rushlight/ops/_linalg_qr.h"
#include "rushlight/ops/_ormqr.h"
#include "rushlight/ops/_pivots_to_order.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/adjoint.h"
#include "rushlight/ops/any.h"
#include "rushlight/ops/argmax.h"
#include "rushlight/ops/argsort.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/diag_embed.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/eye.h"
#include "rushlight/ops/gather.h"
#include "rushlight/ops/linalg_solve_triangular.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/new_empty.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/tril.h"
#include "rushlight/ops/triu.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {
namespace {

// Returns identity matrices of n rows and m columns, one for each matrix of a's batch.
Tensor identity(const Tensor& a, int64_t n, int64_t m) {
    return expand_batch(ops::eye(n, m, a.dtype(), a.device()), batch_of(a));
}

// Broadcasts the batch dimensions of `a` and `b` against each other.
void broadcast_batches(const char* op, const char* first, Tensor& a, const char* second, Tensor& b) {
    const std::vector<int64_t> batch = broadcast_shapes(op, first, batch_of(a), second, batch_of(b));
    a = expand_batch(a, batch);
    b = expand_batch(b, batch);
}

// Permutes rows: row i of the result is row order[i] of `matrix`.
Tensor take_rows(const Tensor& matrix, const Tensor& order) {
    std::vector<int64_t> sizes = matrix.shape();
    sizes[sizes.size() - 2] = order.size(-1);
    return ops::gather(matrix, -2, ops::expand(ops::unsqueeze(order, -1), sizes));
}

}  // namespace

// --- Cholesky ---

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& A, bool upper, bool check_errors) {
    check_square_matrix("linalg.cholesky_ex", "A", A);
    auto [factor, info] = ops::_linalg_cholesky(upper ? ops::adjoint(A) : A);
    if (check_errors) check_info("linalg.cholesky_ex(A)", info, kNotPositive);
    return {upper ? ops::adjoint(factor) : factor, info};
}

Tensor linalg_cholesky(const Tensor& A, bool upper) {
    check_square_matrix("linalg.cholesky", "A", A);
    auto [factor, info] = ops::_linalg_cholesky(upper ? ops::adjoint(A) : A);
    check_info("linalg.cholesky(A)", info, kNotPositive);
    return upper ? ops::adjoint(factor) : factor;
}

Tensor cholesky(const Tensor& input, bool upper) { return linalg_cholesky(input, upper); }

Tensor cholesky_solve(const Tensor& B, const Tensor& L, bool upper) {
    check_matrix("cholesky_solve", "B", B);
    check_square_matrix("cholesky_solve", "L", L);
    const Tensor transposed = ops::adjoint(L);
    const Tensor& lower = upper ? transposed : L;
    const Tensor half = ops::linalg_solve_triangular(lower, B, false);
    return ops::linalg_solve_triangular(upper ? L : transposed, half, true);
}

Tensor cholesky_inverse(const Tensor& L, bool upper) {
    check_square_matrix("cholesky_inverse", "L", L);
    if (L.numel() != 0) {
        const Tensor zeros = ops::eq(ops::diagonal(ops::detach(L), 0, -2, -1), Scalar(0));
        const Tensor first = ops::add(ops::argmax(ops::_to_copy(zeros, DType::Int32), -1), Scalar(1));
        const Tensor info = ops::mul(ops::any(zeros, kInts<-1>), first);
        check_info("cholesky_inverse", ops::_to_copy(info, DType::Int32), kSingular);
    }
    // Multiplies the factor's inverse by its adjoint. Solving with the factor a second time would divide by the factor's
    // elements and could give NaN where the inverse has overflowed.
    const Tensor lower = upper ? ops::adjoint(L) : L;
    const Tensor inverse = ops::linalg_solve_triangular(lower, identity(L, L.size(-1), L.size(-1)), false);
    return ops::matmul(ops::adjoint(inverse), inverse);
}

// --- LU ---

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, bool pivot, bool check_errors) {
    check_matrix("linalg.lu_factor", "A", A);
    RL_CHECK(pivot, throw_runtime, "linalg.lu_factor(pivot): pivot=False is not supported on the CPU");
    auto results = ops::_linalg_lu_factor(A);
    if (check_errors) check_info("linalg.lu_factor_ex(A)", std::get<2>(results), kSingular);
    return results;
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
    auto [factors, pivots, info] = linalg_lu_factor_ex(A, pivot, false);
    check_info("linalg.lu_factor(A)", info, kSingular);
    return {factors, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                                             bool unpack_pivots) {
    check_matrix("lu_unpack", "LU_data", LU_data);
    check_pivots("lu_unpack", LU_pivots, LU_data, "LU_pivots");
    const int64_t m = LU_data.size(-2), n = LU_data.size(-1), k = std::min(m, n);
    const auto none = [&] { return ops::new_empty(LU_data, kInts<0>); };
    Tensor p = unpack_pivots
                   ? take_rows(identity(LU_data, m, m), ops::argsort(ops::_pivots_to_order(LU_pivots, m)))
                   : none();
    if (!unpack_data) return {p, none(), none()};
    return {p, ops::add(ops::tril(ops::narrow(LU_data, -1, 0, k), -1), identity(LU_data, m, k)),
            ops::triu(ops::narrow(LU_data, -2, 0, k))};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
    auto [factors, pivots, info] = linalg_lu_factor_ex(A, pivot, false);
    return lu_unpack(factors, pivots, true, true);
}

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
    check_square_matrix("linalg.lu_solve", "LU", LU);
    check_matrix("linalg.lu_solve", "B", B);
    check_pivots("linalg.lu_solve", pivots, LU, "pivots");
    if (!left) {
        const Tensor solution = linalg_lu_solve(LU, pivots, ops::adjoint(B), true, !adjoint);
        return ops::clone(ops::adjoint(solution), "contiguous");
    }
    Tensor order = ops::_pivots_to_order(pivots, LU.size(-1));
    auto rows_of = [&](const Tensor& x, const Tensor& which) {
        Tensor all = x, positions = ops::unsqueeze(which, -1);
        broadcast_batches("linalg.lu_solve", "LU", positions, "B", all);
        return take_rows(all, ops::select(positions, -1, 0));
    };
    RL_CHECK(B.size(-2) == LU.size(-1), throw_runtime,
             "linalg.lu_solve(B): needs %lld rows for factors of shape %s, got shape %s",
             (long long)LU.size(-1), to_string(LU.sizes()).c_str(), to_string(B.sizes()).c_str());
    if (!adjoint) {
        const Tensor half = ops::linalg_solve_triangular(LU, rows_of(B, order), false, true, true);
        return ops::linalg_solve_triangular(LU, half, true);
    }
    const Tensor transposed = ops::adjoint(LU);
    const Tensor half = ops::linalg_solve_triangular(transposed, B, false);
    return rows_of(ops::linalg_solve_triangular(transposed, half, true, true, true), ops::argsort(order));
}

Tensor lu_solve_of(const Tensor& b, const Tensor& LU_data, const Tensor& LU_pivots) {
    return linalg_lu_solve(LU_data, LU_pivots, b, true, false);
}

// --- LDL ---

std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& A, bool hermitian, bool check_errors) {
    check_square_matrix("linalg.ldl_factor", "A", A);
    auto results = ops::_linalg_ldl_factor(A, hermitian);
    if (check_errors)
        check_info("linalg.ldl_factor_ex(A)", std::get<2>(results),
                   "is singular: element %lld of the diagonal of D is zero");
    return results;
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& A, bool hermitian) {
    auto [factors, pivots, info] = linalg_ldl_factor_ex(A, hermitian, false);
    return {factors, pivots};
}

Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
    check_square_matrix("linalg.ldl_solve", "LD", LD);
    check_matrix("linalg.ldl_solve", "B", B);
    check_same_dtype("linalg.ldl_solve", "LD", LD, "B", B);
    check_pivots("linalg.ldl_solve", pivots, LD, "pivots");
    RL_CHECK(B.size(-2) == LD.size(-1), throw_runtime,
             "linalg.ldl_solve(B): needs %lld rows for factors of shape %s, got shape %s",
             (long long)LD.size(-1), to_string(LD.sizes()).c_str(), to_string(B.sizes()).c_str());
    Tensor factors = LD, right = B, order = ops::unsqueeze(pivots, -1);
    broadcast_batches("linalg.ldl_solve", "LD", factors, "B", right);
    order = expand_batch(order, batch_of(factors));
    return ops::_linalg_ldl_solve(factors, ops::select(order, -1, 0), right, hermitian);
}

// --- QR ---

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode) {
    check_matrix("linalg.qr", "A", A);
    const bool reduced = mode == "reduced", complete = mode == "complete", alone = mode == "r";
    RL_CHECK(reduced || complete || alone, throw_runtime,
             "linalg.qr(mode): must be 'reduced', 'complete' or 'r', got '%.*s'",
             static_cast<int>(mode.size()), mode.data());
    const int64_t m = A.size(-2), n = A.size(-1);
    const int how = complete ? 1 : alone ? 2 : 0;
    if (!differentiated(A) || (m >= n && !alone)) return ops::_linalg_qr(A, how);
    // The formula for the derivative applies to tall matrices only. A wide matrix is divided into a square matrix of the
    // first columns and the remaining columns. The square matrix is factored, and the remaining columns are multiplied by
    // the adjoint of its Q.
    auto [q, r] = ops::_linalg_qr(m >= n ? A : ops::narrow(A, -1, 0, m), 0);
    if (m < n) {
        const Tensor parts[] = {r, ops::matmul(ops::adjoint(q), ops::narrow(A, -1, m, n - m))};
        r = ops::cat(parts, -1);
    }
    return {alone ? ops::new_empty(A, kInts<0>) : q, r};
}

std::tuple<Tensor, Tensor> qr(const Tensor& input, bool some) {
    return linalg_qr(input, some ? "reduced" : "complete");
}

namespace {

void check_reflectors(const char* op, const Tensor& reflectors, const Tensor& tau) {
    check_matrix(op, "input", reflectors);
    check_same_dtype(op, "input", reflectors, "tau", tau);
    IntList batch = batch_of(reflectors);
    RL_CHECK(tau.dim() == reflectors.dim() - 1 && tau.size(-1) <= reflectors.size(-1) &&
                 std::equal(batch.begin(), batch.end(), tau.sizes().begin()),
             throw_runtime,
             "%s(tau): needs at most one number for each column of an input of shape %s, got %s", op,
             to_string(reflectors.sizes()).c_str(), to_string(tau.sizes()).c_str());
}

// Returns the vector of reflector i, as a matrix of one column with the leading one and the zeros above it, and its factor
// tau.
std::pair<Tensor, Tensor> reflector(const Tensor& reflectors, const Tensor& tau, int64_t i) {
    const int64_t m = reflectors.size(-2);
    const Tensor below = ops::tril(ops::narrow(reflectors, -1, i, 1), -1 - i);
    const Tensor one =
        expand_batch(ops::narrow(ops::eye(m, m, tau.dtype(), tau.device()), -1, i, 1), batch_of(reflectors));
    return {ops::add(below, one), ops::unsqueeze(ops::narrow(tau, -1, i, 1), -1)};
}

// (I - tau v v^H) x
Tensor reflect(const Tensor& v, const Tensor& tau, const Tensor& x) {
    return ops::sub(x, ops::matmul(ops::mul(tau, v), ops::matmul(ops::adjoint(v), x)));
}

}  // namespace

Tensor householder_product(const Tensor& A, const Tensor& tau) {
    check_reflectors("linalg.householder_product", A, tau);
    RL_CHECK(A.size(-2) >= A.size(-1), throw_runtime,
             "linalg.householder_product(A): needs at least as many rows as columns, got shape %s",
             to_string(A.sizes()).c_str());
    if (!differentiated(A, tau)) return ops::_householder_product(A, tau);
    Tensor q = identity(A, A.size(-2), A.size(-1));
    for (int64_t i = tau.size(-1) - 1; i >= 0; --i) {
        const auto [v, factor] = reflector(A, tau, i);
        q = reflect(v, factor, q);
    }
    return q;
}

Tensor ormqr(const Tensor& input, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
    check_reflectors("ormqr", input, tau);
    check_matrix("ormqr", "other", other);
    check_same_dtype("ormqr", "input", input, "other", other);
    IntList batch = batch_of(input), others = batch_of(other);
    RL_CHECK(other.size(left ? -2 : -1) == input.size(-2) && tau.size(-1) <= input.size(-2) &&
                 std::equal(batch.begin(), batch.end(), others.begin(), others.end()),
             throw_runtime,
             "ormqr(other): reflectors of shape %s cannot be multiplied with a matrix of shape %s",
             to_string(input.sizes()).c_str(), to_string(other.sizes()).c_str());
    if (!differentiated(input, tau, other)) return ops::_ormqr(input, tau, other, left, transpose);
    if (!left) return ops::adjoint(ormqr(input, tau, ops::adjoint(other), true, !transpose));
    Tensor x = other;
    const int64_t k = tau.size(-1);
    // Q = H1 H2 ...: Q applies the last reflector first, and Q^H the first one.
    for (int64_t i = 0; i < k; ++i) {
        const auto [v, factor] = reflector(input, tau, transpose ? i : k - 1 - i);
        x = reflect(v, transpose ? ops::conj(factor) : factor, x);
    }
    return x;
}

// --- derivatives ---

namespace {

Tensor real_diagonal(const Tensor& x) { return ops::real(ops::diagonal(x, 0, -2, -1)); }

// Returns a Hermitian matrix from the lower triangle of `x`. The diagonal of a Hermitian matrix is real.
Tensor mirrored(const Tensor& x) {
    const Tensor below = ops::tril(x, -1);
    const Tensor half =
        is_complex(x.dtype()) ? ops::add(below, ops::diag_embed(real_diagonal(x))) : ops::tril(x);
    return ops::add(half, ops::adjoint(below));
}
Tensor upper_solve(const Tensor& u, const Tensor& b, bool left, bool ones = false) {
    return ops::linalg_solve_triangular(u, b, true, left, ones);
}
Tensor lower_solve(const Tensor& l, const Tensor& b, bool left, bool ones = false) {
    return ops::linalg_solve_triangular(l, b, false, left, ones);
}

}  // namespace

Tensor cholesky_backward(const Tensor& grad, const Tensor& L) {
    const Tensor transposed = ops::adjoint(L);
    const Tensor inner = mirrored(ops::matmul(transposed, ops::tril(grad)));
    return ops::mul(lower_solve(L, upper_solve(transposed, inner, true), false), Scalar(0.5));
}

// Uses the Hermitian part of the tangent, so that this linear map is the transpose of cholesky_backward, which returns
// Hermitian gradients.
Tensor cholesky_forward(const Tensor& tangent, const Tensor& L) {
    const Tensor along = ops::mul(ops::add(tangent, ops::adjoint(tangent)), Scalar(0.5));
    const Tensor inner = upper_solve(ops::adjoint(L), lower_solve(L, along, true), false);
    const Tensor half = ops::mul(ops::add(ops::tril(inner), ops::tril(inner, -1)), Scalar(0.5));
    return ops::matmul(L, half);
}

// With A = P L U and k the smaller of the numbers of rows and columns, both factors of the leading k by k matrix are
// determined by that matrix. The rows below, or the columns on the right, follow from the factors.
Tensor lu_backward(const Tensor& grad, const Tensor& LU, const Tensor& pivots) {
    const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
    auto corner = [&](const Tensor& t) { return ops::narrow(ops::narrow(t, -2, 0, k), -1, 0, k); };
    const Tensor square = corner(LU), transposed = ops::adjoint(square);
    const Tensor g = corner(grad);
    Tensor of_lower = ops::tril(g, -1), of_upper = ops::triu(g), rest;
    if (m > n) {
        const Tensor below = ops::narrow(LU, -2, k, m - k);
        rest = lower_solve(transposed, ops::narrow(grad, -2, k, m - k), false);
        of_upper = ops::sub(of_upper, ops::triu(ops::matmul(ops::adjoint(below), rest)));
    } else if (m < n) {
        const Tensor right = ops::narrow(LU, -1, k, n - k);
        rest = upper_solve(transposed, ops::narrow(grad, -1, k, n - k), true, true);
        of_lower = ops::sub(of_lower, ops::tril(ops::matmul(rest, ops::adjoint(right)), -1));
    }
    const Tensor lower = ops::add(ops::tril(square, -1), identity(LU, k, k));
    const Tensor inner = ops::add(ops::tril(ops::matmul(ops::adjoint(lower), of_lower), -1),
                                  ops::triu(ops::matmul(of_upper, ops::adjoint(ops::triu(square)))));
    Tensor made = lower_solve(transposed, upper_solve(transposed, inner, true, true), false);
    if (rest.defined()) {
        const Tensor parts[] = {made, rest};
        made = ops::cat(parts, m > n ? -2 : -1);
    }
    return take_rows(made, ops::argsort(ops::_pivots_to_order(pivots, m)));
}

Tensor lu_forward(const Tensor& tangent, const Tensor& LU, const Tensor& pivots) {
    const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
    auto corner = [&](const Tensor& t) { return ops::narrow(ops::narrow(t, -2, 0, k), -1, 0, k); };
    const Tensor square = corner(LU), all = take_rows(tangent, ops::_pivots_to_order(pivots, m));
    const Tensor lower = ops::add(ops::tril(square, -1), identity(LU, k, k));
    const Tensor inner = upper_solve(square, lower_solve(square, corner(all), true, true), false);
    const Tensor of_lower = ops::matmul(lower, ops::tril(inner, -1)),
                 of_upper = ops::matmul(ops::triu(inner), ops::triu(square));
    const Tensor made = ops::add(of_lower, of_upper);
    if (m == n) return made;
    Tensor rest;
    if (m > n) {
        const Tensor change = ops::matmul(ops::narrow(LU, -2, k, m - k), of_upper);
        rest = upper_solve(square, ops::sub(ops::narrow(all, -2, k, m - k), change), false);
    } else {
        const Tensor change = ops::matmul(of_lower, ops::narrow(LU, -1, k, n - k));
        rest = lower_solve(square, ops::sub(ops::narrow(all, -1, k, n - k), change), true, true);
    }
    const Tensor parts[] = {made, rest};
    return ops::cat(parts, m > n ? -2 : -1);
}

namespace {

// A matrix without columns has no elements, so Q does not depend on the matrix.
bool has_columns(const Tensor& Q, const Tensor& R) {
    if (R.size(-1) == 0) return false;
    RL_CHECK(Q.size(-1) == R.size(-1), throw_not_implemented,
             "linalg.qr(mode): 'complete' has no derivative for this shape: Q of shape %s has columns that "
             "the matrix does not determine\n"
             "hint: use mode='reduced'",
             to_string(Q.sizes()).c_str());
    return true;
}

}  // namespace

Tensor qr_backward(const Tensor& grad_Q, const Tensor& grad_R, const Tensor& Q, const Tensor& R) {
    if (!has_columns(Q, R)) return ops::matmul(Q, R);
    // Q * grad_R is added after the division by R. If Q is square, the component of grad_Q outside of the space of its
    // columns is 0 and is not divided either. So rounding errors are not magnified if the last element of R's diagonal is
    // small.
    const Tensor upper = ops::triu(grad_R), inside = ops::matmul(ops::adjoint(Q), grad_Q);
    const Tensor inner = ops::sub(inside, ops::matmul(upper, ops::adjoint(R)));
    const Tensor skew = ops::sub(inner, ops::adjoint(inner));
    Tensor below = ops::tril(skew, -1);
    if (is_complex(skew.dtype()))  // R's diagonal stays real
        below = ops::add(below, ops::mul(ops::diag_embed(ops::diagonal(skew, 0, -2, -1)), Scalar(0.5)));
    if (Q.size(-2) == Q.size(-1))
        return ops::matmul(Q, ops::add(upper, lower_solve(ops::adjoint(R), below, false)));
    const Tensor outside = ops::sub(grad_Q, ops::matmul(Q, inside));
    const Tensor quotient = lower_solve(ops::adjoint(R), ops::add(outside, ops::matmul(Q, below)), false);
    return ops::add(quotient, ops::matmul(Q, upper));
}

std::tuple<Tensor, Tensor> qr_forward(const Tensor& tangent, const Tensor& Q, const Tensor& R) {
    if (!has_columns(Q, R)) return {ops::zeros_like(Q), ops::zeros_like(R)};
    const Tensor inside = ops::matmul(ops::adjoint(Q), tangent), inner = upper_solve(R, inside, false);
    const Tensor below = ops::tril(inner, -1);
    Tensor skew = ops::sub(below, ops::adjoint(below));
    if (is_complex(skew.dtype())) {  // R's diagonal stays real
        const Tensor diagonal = ops::diagonal(inner, 0, -2, -1);
        skew = ops::add(skew, ops::diag_embed(ops::sub(diagonal, ops::real(diagonal))));
    }
    const Tensor of_R = ops::triu(ops::sub(inside, ops::matmul(skew, R)));
    const Tensor of_Q = ops::matmul(Q, skew);
    if (Q.size(-2) == Q.size(-1)) return {of_Q, of_R};
    const Tensor outside = ops::sub(tangent, ops::matmul(Q, inside));
    return {ops::add(of_Q, upper_solve(R, outside, false)), of_R};
}

}  // namespace rushlight::composites
