#include <cmath>
#include <limits>

#include "bodies/linalg.h"
#include "bodies/spectrum.h"
#include "ops/differentiated.h"
#include "ops/host_values.h"
#include "ops/matrices.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_linalg_eig.h"
#include "rushlight/ops/_linalg_eigh.h"
#include "rushlight/ops/_linalg_inv.h"
#include "rushlight/ops/_linalg_pinv.h"
#include "rushlight/ops/_linalg_solve.h"
#include "rushlight/ops/_linalg_svd.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/adjoint.h"
#include "rushlight/ops/all.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/complex.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/diag_embed.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/eye.h"
#include "rushlight/ops/gt.h"
#include "rushlight/ops/imag.h"
#include "rushlight/ops/isfinite.h"
#include "rushlight/ops/logical_and.h"
#include "rushlight/ops/logical_or.h"
#include "rushlight/ops/masked_fill.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/maximum.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/new_full.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/reciprocal.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool reads_upper(const char* op, std::string_view triangle) {
    const bool lower = triangle == "L" || triangle == "l", upper = triangle == "U" || triangle == "u";
    RL_CHECK(lower || upper, throw_runtime, "%s(UPLO): must be 'L' or 'U', got '%.*s'", op,
             static_cast<int>(triangle.size()), triangle.data());
    return upper;
}

// The drivers have the names of cuSOLVER's drivers. The CUDA kernels use the same method for all drivers.
void check_driver(const char* op, const Tensor& a, const std::optional<std::string_view>& driver) {
    if (!driver) return;
    RL_CHECK(a.device().type == DeviceType::CUDA, throw_runtime,
             "%s(driver): can be chosen on CUDA devices only, got '%.*s'", op,
             static_cast<int>(driver->size()), driver->data());
    RL_CHECK(*driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda", throw_runtime,
             "%s(driver): must be 'gesvd', 'gesvdj' or 'gesvda', got '%.*s'", op,
             static_cast<int>(driver->size()), driver->data());
}

double precision_of(const Tensor& a) {
    return itemsize(a.dtype()) == (is_complex(a.dtype()) ? 8 : 4) ? std::numeric_limits<float>::epsilon()
                                                                  : std::numeric_limits<double>::epsilon();
}

// Returns the magnitudes of the eigenvalues if `hermitian` is true, otherwise the singular values.
Tensor magnitudes(const Tensor& a, bool hermitian) {
    return hermitian ? ops::abs(std::get<0>(ops::_linalg_eigh(a, false, differentiated(a))))
                     : std::get<1>(ops::_linalg_svd(a, false, differentiated(a)));
}

struct Tolerances {
    Tensor atol, rtol;
};

// Returns a number, or a tensor of the batch's shape, as a tensor of the real dtype.
Tensor as_tolerance(const Tensor& a, const TensorOrScalar& value) {
    const DType real = real_dtype(a.dtype());
    if (!value.is_tensor()) return ops::new_full(a, IntList(), value.scalar(), real);
    return value.tensor().dtype() == real ? value.tensor() : ops::_to_copy(value.tensor(), real);
}

Tolerances tolerances(const Tensor& a, const std::optional<TensorOrScalar>& atol,
                      const std::optional<TensorOrScalar>& rtol) {
    const Tensor absolute = as_tolerance(a, atol ? *atol : TensorOrScalar(0.0));
    if (rtol) return {absolute, as_tolerance(a, *rtol)};
    const double usual = precision_of(a) * static_cast<double>(std::max(a.size(-1), a.size(-2)));
    const Tensor relative = as_tolerance(a, TensorOrScalar(usual));
    return {absolute, atol ? ops::masked_fill(ops::add(relative, ops::mul(absolute, Scalar(0))),
                                              ops::gt(absolute, Scalar(0)), Scalar(0))
                           : relative};
}

// Returns a mask of the values along the last dimension that exceed the tolerances.
Tensor above(const Tensor& values, const Tolerances& t) {
    const Tensor largest = ops::amax(values, kInts<-1>, true);
    const Tensor limit =
        ops::maximum(ops::unsqueeze(t.atol, -1), ops::mul(ops::unsqueeze(t.rtol, -1), largest));
    return ops::gt(values, limit);
}

Tensor columns_times(const Tensor& matrix, const Tensor& factors) {
    return ops::mul(matrix, ops::unsqueeze(factors, -2));
}
Tensor rows_times(const Tensor& matrix, const Tensor& factors) {
    return ops::mul(matrix, ops::unsqueeze(factors, -1));
}

// Returns x / y, or 0 where `zero` is true or where x and y are both 0.
Tensor quotient(const Tensor& x, const Tensor& y, const Tensor& zero = Tensor()) {
    Tensor left_out = ops::logical_and(ops::eq(x, Scalar(0)), ops::eq(y, Scalar(0)));
    if (zero.defined()) left_out = ops::logical_or(left_out, zero);
    return ops::masked_fill(ops::div(x, ops::masked_fill(y, left_out, Scalar(1))), left_out, Scalar(0));
}

// Returns x[i][j] / (values[j] - values[i]) off the diagonal, and 0 on the diagonal.
Tensor by_differences(const Tensor& x, const Tensor& values) {
    const Tensor differences = ops::sub(ops::unsqueeze(values, -2), ops::unsqueeze(values, -1));
    return quotient(x, differences, ops::eye(values.size(-1), std::nullopt, DType::Bool, values.device()));
}

}  // namespace

// --- eigenvalues ---

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& A, std::string_view UPLO) {
    check_square_matrix("linalg.eigh", "A", A);
    return ops::_linalg_eigh(A, reads_upper("linalg.eigh", UPLO), true);
}

Tensor linalg_eigvalsh(const Tensor& A, std::string_view UPLO) {
    check_square_matrix("linalg.eigvalsh", "A", A);
    return std::get<0>(ops::_linalg_eigh(A, reads_upper("linalg.eigvalsh", UPLO), differentiated(A)));
}

Tensor eigh_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& eigenvalues,
                     const Tensor& eigenvectors) {
    const Tensor transposed = ops::adjoint(eigenvectors), inner = ops::matmul(transposed, grad_vectors);
    // The input is Hermitian, so the Hermitian part of `inner` has no effect on the derivative. It is removed, so that the
    // gradient is Hermitian, too.
    const Tensor skew = ops::mul(ops::sub(inner, ops::adjoint(inner)), Scalar(0.5));
    const Tensor turn = by_differences(skew, eigenvalues);
    return ops::matmul(eigenvectors, ops::matmul(ops::add(turn, ops::diag_embed(grad_values)), transposed));
}

// Uses the Hermitian part of the tangent, like cholesky_forward.
std::tuple<Tensor, Tensor> eigh_forward(const Tensor& tangent, const Tensor& eigenvalues,
                                        const Tensor& eigenvectors) {
    const Tensor rotated = ops::matmul(ops::adjoint(eigenvectors), ops::matmul(tangent, eigenvectors));
    const Tensor inner = ops::mul(ops::add(rotated, ops::adjoint(rotated)), Scalar(0.5));
    return {ops::real(ops::diagonal(inner, 0, -2, -1)),
            ops::matmul(eigenvectors, by_differences(inner, eigenvalues))};
}

namespace {

void check_finite(const char* op, const Tensor& a) {
    if (a.device().type == DeviceType::Meta) return;
    require_values(op, a);
    RL_CHECK(on_host(ops::all(ops::isfinite(ops::detach(a)))).data<bool>()[0], throw_runtime,
             "%s(A): has elements that are not finite", op);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& A) {
    check_square_matrix("linalg.eig", "A", A);
    check_finite("linalg.eig", A);
    return ops::_linalg_eig(A, true);
}

Tensor linalg_eigvals(const Tensor& A) {
    check_square_matrix("linalg.eigvals", "A", A);
    check_finite("linalg.eigvals", A);
    return std::get<0>(ops::_linalg_eig(A, differentiated(A)));
}

// The eigenvectors have length 1, so the component that changes their length is removed. Source: Boeddeker et al., "On the
// computation of complex-valued gradients with application to statistically optimum beamforming", 2017.
Tensor eig_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& eigenvalues,
                    const Tensor& eigenvectors, DType wanted) {
    const Tensor transposed = ops::adjoint(eigenvectors);
    const Tensor of_vectors = ops::matmul(transposed, grad_vectors);
    const Tensor along = ops::real(ops::diagonal(of_vectors, 0, -2, -1));
    const Tensor across = ops::sub(of_vectors, columns_times(ops::matmul(transposed, eigenvectors), along));
    const Tensor inner =
        ops::add(by_differences(across, ops::conj(eigenvalues)), ops::diag_embed(grad_values));
    const Tensor made = std::get<0>(ops::_linalg_solve(transposed, ops::matmul(inner, transposed), true));
    return is_complex(wanted) ? made : ops::real(made);
}

std::tuple<Tensor, Tensor> eig_forward(const Tensor& tangent, const Tensor& eigenvalues,
                                       const Tensor& eigenvectors) {
    const Tensor change = ops::matmul(ops::_to_copy(tangent, eigenvectors.dtype()), eigenvectors);
    const Tensor inner = std::get<0>(ops::_linalg_solve(eigenvectors, change, true));
    const Tensor rotated = ops::matmul(eigenvectors, by_differences(inner, eigenvalues));
    const Tensor along =
        ops::real(ops::diagonal(ops::matmul(ops::adjoint(eigenvectors), rotated), 0, -2, -1));
    return {ops::diagonal(inner, 0, -2, -1), ops::sub(rotated, columns_times(eigenvectors, along))};
}

// --- singular values ---

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices,
                                              std::optional<std::string_view> driver) {
    check_matrix("linalg.svd", "A", A);
    check_driver("linalg.svd", A, driver);
    return ops::_linalg_svd(A, full_matrices, true);
}

Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver) {
    check_matrix("linalg.svdvals", "A", A);
    check_driver("linalg.svdvals", A, driver);
    return std::get<1>(ops::_linalg_svd(A, false, differentiated(A)));
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& input, bool some, bool compute_uv) {
    check_matrix("svd", "input", input);
    if (compute_uv) {
        const auto [u, s, vh] = ops::_linalg_svd(input, !some, true);
        return {u, s, ops::clone(ops::adjoint(vh), "contiguous")};
    }
    auto square = [&](int64_t n) {
        std::vector<int64_t> sizes(batch_of(input).begin(), batch_of(input).end());
        sizes.insert(sizes.end(), {n, n});
        return ops::new_zeros(input, sizes);
    };
    return {square(input.size(-2)), linalg_svdvals(input, std::nullopt), square(input.size(-1))};
}

namespace {

// The common phase of a pair of complex singular vectors is arbitrary. Here the left vector changes its phase, by the
// imaginary part of the diagonal divided by the singular value, and the right vector keeps its phase.
Tensor phase(const Tensor& diagonal, const Tensor& s) {
    const Tensor turn = quotient(ops::imag(diagonal), s);
    return ops::complex(ops::mul(turn, Scalar(0)), turn);
}
Tensor with_phase(const Tensor& real, const Tensor& diagonal, const Tensor& s) {
    return is_complex(diagonal.dtype()) ? ops::add(phase(diagonal, s), real) : real;
}

// Returns the largest singular value. Singular values are divided by it before they are squared, so that the squares neither
// overflow nor underflow. It cancels in the result, so it is treated as a constant.
Tensor scale_of(const Tensor& s) {
    if (s.numel() == 0) return ops::sum(s, kInts<-1>, true, std::nullopt);
    const Tensor largest = ops::amax(ops::detach(s), kInts<-1>, true);
    return ops::masked_fill(largest, ops::eq(largest, Scalar(0)), Scalar(1));
}

// Returns scale^2 x[i][j] / (s[j]^2 - s[i]^2) off the diagonal, and 0 on the diagonal.
Tensor by_square_differences(const Tensor& x, const Tensor& s, const Tensor& scale) {
    const Tensor ends = ops::unsqueeze(s, -2), starts = ops::unsqueeze(s, -1),
                 one = ops::unsqueeze(scale, -1);
    const Tensor differences =
        ops::mul(ops::div(ops::sub(ends, starts), one), ops::div(ops::add(ends, starts), one));
    return quotient(x, differences, ops::eye(s.size(-1), std::nullopt, DType::Bool, s.device()));
}

}  // namespace

// The two products of `rotated` are the rotations of the singular vectors within the spaces that they span. The last
// terms are the changes of the left and right vectors out of these spaces. Townsend, "Differentiating the singular value
// decomposition", 2016.
Tensor svd_backward(const Tensor& all_grad_U, const Tensor& grad_S, const Tensor& all_grad_Vh,
                    const Tensor& all_U, const Tensor& S, const Tensor& all_Vh) {
    const int64_t m = all_U.size(-2), n = all_Vh.size(-1), k = S.size(-1);
    const Tensor u = ops::narrow(all_U, -1, 0, k), vh = ops::narrow(all_Vh, -2, 0, k);
    const Tensor grad_u = ops::narrow(all_grad_U, -1, 0, k),
                 grad_v = ops::adjoint(ops::narrow(all_grad_Vh, -2, 0, k));
    const Tensor uh = ops::adjoint(u), v = ops::adjoint(vh), scale = scale_of(S),
                 relative = ops::div(S, scale), whole = ops::unsqueeze(scale, -1);
    auto rotated = [&](const Tensor& x) {
        return ops::div(by_square_differences(ops::sub(x, ops::adjoint(x)), S, scale), whole);
    };
    const Tensor of_u = ops::matmul(uh, grad_u), of_v = ops::matmul(vh, grad_v);
    const Tensor inner =
        ops::add(ops::add(columns_times(rotated(of_u), relative), rows_times(rotated(of_v), relative)),
                 ops::diag_embed(with_phase(grad_S, ops::diagonal(of_u, 0, -2, -1), S)));
    Tensor made = ops::matmul(ops::matmul(u, inner), vh);
    const Tensor columns = ops::unsqueeze(S, -2);
    if (m > k) {
        const Tensor outside = ops::sub(grad_u, ops::matmul(u, of_u));
        made = ops::add(made, ops::matmul(quotient(outside, columns), vh));
    }
    if (n > k) {
        const Tensor outside = ops::sub(grad_v, ops::matmul(v, of_v));
        made = ops::add(made, ops::matmul(u, ops::adjoint(quotient(outside, columns))));
    }
    return made;
}

std::tuple<Tensor, Tensor, Tensor> svd_forward(const Tensor& tangent, const Tensor& all_U, const Tensor& S,
                                               const Tensor& all_Vh) {
    const int64_t m = all_U.size(-2), n = all_Vh.size(-1), k = S.size(-1);
    RL_CHECK(all_U.size(-1) == k && all_Vh.size(-2) == k, throw_not_implemented,
             "linalg.svd(full_matrices): True has no forward-mode derivative, because A does not determine "
             "all columns of U and Vh\n"
             "hint: use full_matrices=False");
    const Tensor &u = all_U, &vh = all_Vh;
    const Tensor uh = ops::adjoint(u), v = ops::adjoint(vh), scale = scale_of(S),
                 relative = ops::div(S, scale), whole = ops::unsqueeze(scale, -1);
    auto rotated = [&](const Tensor& columns, const Tensor& rows) {
        const Tensor both = ops::add(columns_times(columns, relative), rows_times(rows, relative));
        return ops::div(by_square_differences(both, S, scale), whole);
    };
    const Tensor right = ops::matmul(tangent, v), inner = ops::matmul(uh, right),
                 mirrored = ops::adjoint(inner);
    Tensor of_u = ops::matmul(u, rotated(inner, mirrored)), of_v = ops::matmul(v, rotated(mirrored, inner));
    const Tensor columns = ops::unsqueeze(S, -2);
    if (m > k) of_u = ops::add(of_u, quotient(ops::sub(right, ops::matmul(u, inner)), columns));
    if (n > k) {
        const Tensor left = ops::matmul(ops::adjoint(tangent), u);
        of_v = ops::add(of_v, quotient(ops::sub(left, ops::matmul(v, mirrored)), columns));
    }
    const Tensor diagonal = ops::diagonal(inner, 0, -2, -1);
    if (is_complex(diagonal.dtype())) of_u = ops::add(of_u, columns_times(u, phase(diagonal, S)));
    return {of_u, ops::real(diagonal), ops::adjoint(of_v)};
}

// --- functions of eigenvalues and singular values ---

Tensor _linalg_pinv(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
    RL_CHECK(std::max(atol.dim(), rtol.dim()) <= A.dim() - 2, throw_runtime,
             "linalg_pinv(atol, rtol): shapes %s and %s have more dimensions than the batch of A, which has "
             "shape %s",
             to_string(atol.sizes()).c_str(), to_string(rtol.sizes()).c_str(), to_string(A.sizes()).c_str());
    if (A.numel() == 0) {
        std::vector<int64_t> sizes = A.shape();
        std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
        return ops::new_zeros(A, sizes);
    }
    auto inverted = [&](const Tensor& values, const Tensor& size) {
        return ops::where(above(size, {atol, rtol}), ops::reciprocal(values), TensorOrScalar(Scalar(0)));
    };
    if (hermitian) {
        const auto [values, vectors] = ops::_linalg_eigh(A, false, true);
        return ops::matmul(columns_times(vectors, inverted(values, ops::abs(values))), ops::adjoint(vectors));
    }
    const auto [u, s, vh] = ops::_linalg_svd(A, false, true);
    return ops::matmul(columns_times(ops::adjoint(vh), inverted(s, s)), ops::adjoint(u));
}

Tensor linalg_pinv(const Tensor& A, const std::optional<TensorOrScalar>& atol,
                   const std::optional<TensorOrScalar>& rtol, bool hermitian) {
    hermitian ? check_square_matrix("linalg.pinv", "A", A) : check_matrix("linalg.pinv", "A", A);
    const auto [absolute, relative] = tolerances(A, atol, rtol);
    return ops::_linalg_pinv(A, absolute, relative, hermitian);
}

Tensor linalg_pinv_rcond(const Tensor& A, const TensorOrScalar& rcond, bool hermitian) {
    return linalg_pinv(A, std::nullopt, rcond, hermitian);
}

Tensor pinverse(const Tensor& input, double rcond) { return linalg_pinv_rcond(input, rcond, false); }

Tensor pinv_backward(const Tensor& grad, const Tensor& A, const Tensor& inverse) {
    const Tensor ph = ops::adjoint(inverse), gh = ops::adjoint(grad);
    const Tensor gp = ops::matmul(gh, inverse), pg = ops::matmul(inverse, gh);
    // -P^H G P^H + (I - A P) G^H P P^H + P^H P G^H (I - P A)
    Tensor made = ops::neg(ops::matmul(ph, ops::matmul(grad, ph)));
    made = ops::add(made, ops::matmul(ops::sub(gp, ops::matmul(A, ops::matmul(inverse, gp))), ph));
    return ops::add(made, ops::matmul(ph, ops::sub(pg, ops::matmul(ops::matmul(pg, inverse), A))));
}

Tensor pinv_forward(const Tensor& tangent, const Tensor& A, const Tensor& inverse) {
    const Tensor ph = ops::adjoint(inverse), th = ops::adjoint(tangent);
    const Tensor pt = ops::matmul(ph, th), tp = ops::matmul(th, ph);
    // -P T P + P P^H T^H (I - A P) + (I - P A) T^H P^H P
    Tensor made = ops::neg(ops::matmul(inverse, ops::matmul(tangent, inverse)));
    made = ops::add(made, ops::matmul(inverse, ops::sub(pt, ops::matmul(ops::matmul(pt, A), inverse))));
    return ops::add(made, ops::matmul(ops::sub(tp, ops::matmul(inverse, ops::matmul(A, tp))), inverse));
}

namespace {

Tensor rank(const Tensor& a, const Tolerances& t, bool hermitian) {
    const Tensor values = magnitudes(a, hermitian);
    if (values.size(-1) == 0) return ops::sum(values, kInts<-1>, false, DType::Int64);
    return ops::sum(above(values, t), kInts<-1>, false, std::nullopt);
}

}  // namespace

Tensor linalg_matrix_rank(const Tensor& A, const std::optional<TensorOrScalar>& atol,
                          const std::optional<TensorOrScalar>& rtol, bool hermitian) {
    hermitian ? check_square_matrix("linalg.matrix_rank", "A", A)
              : check_matrix("linalg.matrix_rank", "A", A);
    return rank(A, tolerances(A, atol, rtol), hermitian);
}

Tensor linalg_matrix_rank_tol(const Tensor& A, const TensorOrScalar& tol, bool hermitian) {
    return linalg_matrix_rank(A, tol, TensorOrScalar(0.0), hermitian);
}

namespace {

// Returns the product of the norms of the matrix and its inverse, or inf if the matrix is singular.
template <class Norm>
Tensor condition(const Tensor& a, Norm norm) {
    check_square_matrix("linalg.cond", "A", a);
    if (a.numel() == 0) return ops::new_zeros(a, batch_of(a), real_dtype(a.dtype()));
    const auto [inverse, info] = ops::_linalg_inv(a);
    const Tensor singular = ops::ne(info, Scalar(0));
    // The inverse of a singular matrix has infinite elements, for which the nuclear norm raises an error.
    const Tensor finite =
        ops::masked_fill(inverse, ops::unsqueeze(ops::unsqueeze(singular, -1), -1), Scalar(0));
    return ops::masked_fill(ops::mul(norm(a), norm(finite)), singular, Scalar(kInfinity));
}

}  // namespace

Tensor linalg_cond(const Tensor& A, std::optional<Scalar> p) {
    check_matrix("linalg.cond", "A", A);
    if (p && std::abs(p->to<double>()) != 2)
        return condition(
            A, [&](const Tensor& t) { return linalg_matrix_norm(t, *p, kInts<-2, -1>, false, {}); });
    const Tensor s = magnitudes(A, false);
    if (s.size(-1) == 0) return ops::sum(s, kInts<-1>, false, std::nullopt);
    const Tensor largest = ops::select(s, -1, 0), smallest = ops::select(s, -1, -1);
    return p && p->to<double>() < 0 ? ops::div(smallest, largest) : ops::div(largest, smallest);
}

Tensor linalg_cond_name(const Tensor& A, std::string_view p) {
    check_matrix("linalg.cond", "A", A);
    return condition(
        A, [&](const Tensor& t) { return linalg_matrix_norm_name(t, p, kInts<-2, -1>, false, {}); });
}

}  // namespace rushlight::composites
