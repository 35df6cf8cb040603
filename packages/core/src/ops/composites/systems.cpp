#include <limits>

#include "bodies/systems.h"
#include "ops/broadcasting.h"
#include "ops/differentiated.h"
#include "ops/host_values.h"
#include "ops/matrices.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_linalg_det.h"
#include "rushlight/ops/_linalg_inv.h"
#include "rushlight/ops/_linalg_lstsq.h"
#include "rushlight/ops/_linalg_slogdet.h"
#include "rushlight/ops/_linalg_solve.h"
#include "rushlight/ops/_linalg_solve_again.h"
#include "rushlight/ops/_linalg_solve_triangular.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/adjoint.h"
#include "rushlight/ops/all.h"
#include "rushlight/ops/any.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/complex.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/eye.h"
#include "rushlight/ops/imag.h"
#include "rushlight/ops/isfinite.h"
#include "rushlight/ops/linalg_svd.h"
#include "rushlight/ops/log.h"
#include "rushlight/ops/logical_not.h"
#include "rushlight/ops/lt.h"
#include "rushlight/ops/masked_fill.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/new_empty.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/prod.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/tril.h"
#include "rushlight/ops/triu.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {
namespace {

Tensor identity_like(const Tensor& a) {
    return expand_batch(ops::eye(a.size(-1), std::nullopt, a.dtype(), a.device()), batch_of(a));
}

Tensor each(const Tensor& t) { return ops::unsqueeze(ops::unsqueeze(t, -1), -1); }

// Expands both matrices to their common batch shape.
void broadcast_batches(const char* op, Tensor& a, Tensor& b) {
    IntList of_a = batch_of(a), of_b = batch_of(b);
    if (std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end())) return;
    const std::vector<int64_t> batch = broadcast_shapes(op, "A", of_a, "B", of_b);
    a = expand_batch(a, batch);
    b = expand_batch(b, batch);
}

void check_fits(const char* op, const Tensor& a, const Tensor& b, bool left) {
    RL_CHECK(b.size(left ? -2 : -1) == a.size(-1), throw_runtime,
             "%s(B): needs %lld %s for matrices of shape %s, got shape %s", op, (long long)a.size(-1),
             left ? "rows" : "columns", to_string(a.sizes()).c_str(), to_string(b.sizes()).c_str());
}

// Whether B is a batch of vectors: it has one dimension, or the shape of A without the last dimension.
bool is_vector(const Tensor& a, const Tensor& b) {
    return b.dim() == 1 ||
           (b.dim() == a.dim() - 1 && std::equal(b.sizes().begin(), b.sizes().end(), a.sizes().begin()));
}

}  // namespace

// --- triangular systems ---

Tensor linalg_solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left, bool unitriangular) {
    check_square_matrix("linalg.solve_triangular", "A", A);
    check_matrix("linalg.solve_triangular", "B", B);
    check_same_dtype("linalg.solve_triangular", "A", A, "B", B);
    check_fits("linalg.solve_triangular", A, B, left);
    Tensor a = A, b = B;
    broadcast_batches("linalg.solve_triangular", a, b);
    return ops::_linalg_solve_triangular(a, b, upper, left, unitriangular);
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& A, bool upper, bool transpose,
                                            bool unitriangular) {
    check_square_matrix("triangular_solve", "A", A);
    Tensor x = linalg_solve_triangular(transpose ? ops::transpose(A, -2, -1) : A, b, upper != transpose, true,
                                       unitriangular);
    return {x, ops::clone(expand_batch(A, batch_of(x)), "contiguous")};
}

Tensor _triangle(const Tensor& input, bool upper, bool unitriangular) {
    const int64_t beside = unitriangular ? 1 : 0;
    return upper ? ops::triu(input, beside) : ops::tril(input, -beside);
}

// --- solve ---

namespace {

std::tuple<Tensor, Tensor> solve(const char* op, const Tensor& A, const Tensor& B, bool left, bool check) {
    check_square_matrix(op, "A", A);
    check_same_dtype(op, "A", A, "B", B);
    RL_CHECK(B.dim() >= 1, throw_runtime, "%s(B): needs at least 1 dimension, got a 0-d tensor", op);
    const bool vector = is_vector(A, B);
    RL_CHECK(left || !vector, throw_runtime,
             "%s(B, left): left=False needs matrices, got vectors of shape %s", op,
             to_string(B.sizes()).c_str());
    Tensor a = A, b = vector ? ops::unsqueeze(B, -1) : B;
    check_fits(op, a, b, left);
    broadcast_batches(op, a, b);
    auto [x, info] = ops::_linalg_solve(a, b, left);
    if (check) check_info(op, info, kSingular);
    return {vector ? ops::squeeze(x, kInts<-1>) : x, info};
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
    return solve("linalg.solve_ex", A, B, left, check_errors);
}

Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
    return std::get<0>(solve("linalg.solve", A, B, left, true));
}

Tensor _solve_backward(const Tensor& grad_B, const Tensor& X, bool left, bool transposed) {
    const Tensor other = ops::adjoint(X);
    const Tensor grad = ops::neg(left ? ops::matmul(grad_B, other) : ops::matmul(other, grad_B));
    return transposed ? ops::adjoint(grad) : grad;
}

// --- inverse ---

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors) {
    check_square_matrix("linalg.inv", "A", A);
    auto results = ops::_linalg_inv(A);
    if (check_errors) check_info("linalg.inv(A)", std::get<1>(results), kSingular);
    return results;
}

Tensor linalg_inv(const Tensor& A) { return std::get<0>(linalg_inv_ex(A, true)); }

Tensor inverse(const Tensor& input) { return std::get<0>(linalg_inv_ex(input, true)); }

// --- determinant ---

Tensor linalg_det(const Tensor& A) {
    check_square_matrix("linalg.det", "A", A);
    return ops::_linalg_det(A);
}

Tensor det(const Tensor& input) { return linalg_det(input); }

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
    check_square_matrix("linalg.slogdet", "A", A);
    return ops::_linalg_slogdet(A);
}

std::tuple<Tensor, Tensor> slogdet(const Tensor& input) { return linalg_slogdet(input); }

// With z = log(det A), dz is the trace of A^-1 dA. The logarithm of the absolute value is the real part of z, and the angle
// of the sign is its imaginary part.
Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_log, const Tensor& sign,
                        const Tensor& inverse_adjoint) {
    if (!is_complex(sign.dtype())) return ops::mul(each(grad_log), inverse_adjoint);
    const Tensor turn = ops::neg(ops::imag(ops::mul(ops::conj(grad_sign), sign)));
    return ops::mul(each(ops::complex(grad_log, turn)), inverse_adjoint);
}

std::tuple<Tensor, Tensor> slogdet_forward(const Tensor& tangent, const Tensor& sign,
                                           const Tensor& inverse_adjoint) {
    const Tensor trace =
        ops::sum(ops::mul(ops::conj(inverse_adjoint), tangent), kInts<-2, -1>, false, std::nullopt);
    if (!is_complex(sign.dtype())) return {ops::mul(sign, Scalar(0)), trace};
    const Tensor turn = ops::imag(trace);
    return {ops::mul(sign, ops::complex(ops::mul(turn, Scalar(0)), turn)), ops::real(trace)};
}

Tensor logdet(const Tensor& input) {
    check_square_matrix("logdet", "input", input);
    auto [sign, size] = ops::_linalg_slogdet(input);
    if (is_complex(sign.dtype())) return ops::add(ops::log(sign), size);
    return ops::masked_fill(size, ops::lt(sign, Scalar(0)), Scalar(std::numeric_limits<double>::quiet_NaN()));
}

Tensor _inverse_adjoint(const Tensor& A, const Tensor& factors, const Tensor& pivots) {
    check_square_matrix("_inverse_adjoint", "A", A);
    return ops::_linalg_solve_again(A, factors, pivots, identity_like(A), true, true);
}

namespace {

bool any_zero(const Tensor& det) {
    if (det.device().type == DeviceType::Meta) return false;
    if (is_batched(det)) return true;  // the general computation below is right for all matrices
    return on_host(ops::any(ops::eq(ops::detach(det), Scalar(0)))).data<bool>()[0];
}

}  // namespace

Tensor _det_backward(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& factors,
                     const Tensor& pivots) {
    if (!any_zero(det))
        return ops::mul(each(ops::mul(grad, ops::conj(det))), _inverse_adjoint(A, factors, pivots));
    // With A = U S V^H, the gradient is det(U V^H) U C V^H, where element i of the diagonal of C is the product of the other
    // singular values.
    // Matrices with infinities or NaN have no singular values; their gradient is NaN.
    const Tensor wrong =
        each(ops::logical_not(ops::all(ops::isfinite(ops::detach(A)), kInts<-2, -1>, false)));
    const auto [u, s, vh] = ops::linalg_svd(ops::masked_fill(A, wrong, Scalar(0)), true);
    const Tensor others =
        ops::masked_fill(ops::expand(ops::unsqueeze(s, -2), A.sizes()),
                         ops::eye(A.size(-1), std::nullopt, DType::Bool, A.device()), Scalar(1));
    const Tensor scale =
        ops::mul(grad, ops::mul(ops::conj(ops::_linalg_det(u)), ops::conj(ops::_linalg_det(vh))));
    const Tensor scaled = ops::mul(u, ops::unsqueeze(ops::prod(others, -1, false), -2));
    return ops::masked_fill(ops::mul(each(scale), ops::matmul(scaled, vh)), wrong,
                            Scalar(std::numeric_limits<double>::quiet_NaN()));
}

// --- least squares ---

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& A, const Tensor& B,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
    constexpr std::string_view kDrivers[] = {"gels", "gelsy", "gelsd", "gelss"};
    check_matrix("linalg.lstsq", "A", A);
    check_same_dtype("linalg.lstsq", "A", A, "B", B);
    RL_CHECK(B.dim() >= 1, throw_runtime, "linalg.lstsq(B): needs at least 1 dimension, got a 0-d tensor");
    const std::string_view wanted = driver.value_or("gelsy");
    const auto at = std::find(std::begin(kDrivers), std::end(kDrivers), wanted);
    RL_CHECK(at != std::end(kDrivers), throw_runtime,
             "linalg.lstsq(driver): must be 'gels', 'gelsy', 'gelsd' or 'gelss', got '%.*s'",
             static_cast<int>(wanted.size()), wanted.data());
    const int64_t which = at - std::begin(kDrivers), m = A.size(-2), n = A.size(-1);
    const bool vector = is_vector(A, B);
    Tensor a = A, b = vector ? ops::unsqueeze(B, -1) : B;
    RL_CHECK(b.size(-2) == m, throw_runtime,
             "linalg.lstsq(B): needs %lld rows for matrices of shape %s, got shape %s", (long long)m,
             to_string(A.sizes()).c_str(), to_string(B.sizes()).c_str());
    broadcast_batches("linalg.lstsq", a, b);
    const bool narrow = a.dtype() == DType::Float32 || a.dtype() == DType::Complex64;
    const double precision =
        narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    auto [x, rank, values] =
        ops::_linalg_lstsq(a, b, rcond.value_or(precision * static_cast<double>(std::max(m, n))), which);

    bool full = m > n && wanted != "gelsy";
    if (full) {
        const Tensor found = ops::to(is_batched(rank) ? batched_value(rank) : rank, Device());
        for (int64_t i = 0; i < found.numel(); ++i) full = full && found.data<int64_t>()[i] == n;
    }
    Tensor residuals = ops::new_empty(values, kInts<0>);
    if (full) {
        const Tensor rest = ops::sub(ops::matmul(a, x), b);
        residuals = ops::sum(ops::square(ops::abs(rest)), kInts<-2>, false, std::nullopt);
    }
    return {vector ? ops::squeeze(x, kInts<-1>) : x, residuals, rank, ops::detach(values)};
}

// --- tensors as matrices ---

namespace {

int64_t product(IntList sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
}

}  // namespace

Tensor linalg_tensorinv(const Tensor& A, int64_t ind) {
    RL_CHECK(ind > 0 && ind <= A.dim(), throw_runtime,
             "linalg.tensorinv(ind): must be between 1 and %lld for shape %s, got %lld", (long long)A.dim(),
             to_string(A.sizes()).c_str(), (long long)ind);
    IntList rows = A.sizes().first(static_cast<size_t>(ind)),
            columns = A.sizes().subspan(static_cast<size_t>(ind));
    RL_CHECK(
        product(rows) == product(columns), throw_runtime,
        "linalg.tensorinv(A): in shape %s, the product of the first %lld sizes must equal that of the other sizes",
        to_string(A.sizes()).c_str(), (long long)ind);
    const int64_t square[] = {product(rows), product(columns)};
    std::vector<int64_t> sizes(columns.begin(), columns.end());
    sizes.insert(sizes.end(), rows.begin(), rows.end());
    return ops::reshape(linalg_inv(ops::reshape(A, square)), sizes);
}

Tensor linalg_tensorsolve(const Tensor& A, const Tensor& B, std::optional<IntList> dims) {
    Tensor a = A;
    if (dims) {
        std::vector<int64_t> order, last;
        for (int64_t d : *dims) last.push_back(wrap_dim("linalg.tensorsolve", d, A.dim()));
        for (int64_t d = 0; d < A.dim(); ++d)
            if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
        order.insert(order.end(), last.begin(), last.end());
        a = ops::permute(a, order);
    }
    RL_CHECK(B.dim() <= a.dim(), throw_runtime,
             "linalg.tensorsolve(B): shape %s has more dimensions than A's, %s", to_string(B.sizes()).c_str(),
             to_string(a.sizes()).c_str());
    IntList unknown = a.sizes().subspan(static_cast<size_t>(B.dim()));
    const int64_t n = product(unknown);
    RL_CHECK(a.numel() == n * B.numel() && n == B.numel(), throw_runtime,
             "linalg.tensorsolve(A, B): shapes %s and %s are not a square system of equations",
             to_string(a.sizes()).c_str(), to_string(B.sizes()).c_str());
    const int64_t square[] = {n, n}, flat[] = {n};
    return ops::reshape(linalg_solve(ops::reshape(a, square), ops::reshape(B, flat), true), unknown);
}

}  // namespace rushlight::composites
