#include "bodies/factorization.h"

#include "ops/matrices.h"

namespace rushlight::rules {
Outputs linalg_cholesky(const Tensor& A) {
    Outputs out;
    out.like(A);
    add_batch(out, A, {}, DType::Int32);
    return out;
}

Outputs linalg_lu(const Tensor& A) {
    Outputs out;
    out.like(A);
    add_batch(out, A, {std::min(A.size(-1), A.size(-2))}, DType::Int32);
    add_batch(out, A, {}, DType::Int32);
    return out;
}

Outputs _pivots_to_order(const Tensor& pivots, int64_t rows) {
    int64_t sizes[kMaxDims];
    std::copy(pivots.sizes().begin(), pivots.sizes().end(), sizes);
    sizes[pivots.dim() - 1] = rows;
    Outputs out;
    out.add(IntList(sizes, static_cast<size_t>(pivots.dim())), DType::Int64, pivots.device());
    return out;
}

Outputs linalg_ldl(const Tensor& A, bool) {
    Outputs out;
    out.like(A);
    add_batch(out, A, {A.size(-1)}, DType::Int32);
    add_batch(out, A, {}, DType::Int32);
    return out;
}

Outputs linalg_ldl_solve(const Tensor&, const Tensor&, const Tensor& B, bool) {
    Outputs out;
    out.like(B);
    return out;
}

Outputs linalg_qr(const Tensor& A, int64_t mode) {
    enum { Reduced, Complete, Alone };
    const int64_t m = A.size(-2), n = A.size(-1), k = mode == Complete ? m : std::min(m, n);
    Outputs out;
    if (mode == Alone) out.add(kInts<0>, A.dtype(), A.device());
    else add_batch(out, A, {m, k}, A.dtype());
    add_batch(out, A, {k, n}, A.dtype());
    return out;
}

Outputs geqrf(const Tensor& input) {
    check_matrix("geqrf", "input", input);
    Outputs out;
    out.like(input);
    add_batch(out, input, {std::min(input.size(-1), input.size(-2))}, input.dtype());
    return out;
}

Outputs householder_product(const Tensor& A, const Tensor& tau) {
    RL_CHECK(
        A.size(-1) <= A.size(-2) && tau.size(-1) <= A.size(-1), throw_runtime,
        "householder_product(A, tau): %lld reflectors and A of shape %s do not satisfy rows >= columns >= "
        "reflectors",
        (long long)tau.size(-1), to_string(A.sizes()).c_str());
    Outputs out;
    out.like(A);
    return out;
}

Outputs ormqr(const Tensor& input, const Tensor& tau, const Tensor& other, bool, bool) {
    RL_CHECK(tau.size(-1) <= std::min(input.size(-1), input.size(-2)), throw_runtime,
             "ormqr(input, tau): shape %s is too small for %lld reflectors", to_string(input.sizes()).c_str(),
             (long long)tau.size(-1));
    Outputs out;
    out.like(other);
    return out;
}

}  // namespace rushlight::rules
