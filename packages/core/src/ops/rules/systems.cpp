#include "bodies/systems.h"

#include "ops/matrices.h"

namespace rushlight::rules {
namespace {

// Adds the outputs that are saved to solve with the same matrix later.
void add_factors(Outputs& out, const Tensor& a) {
    out.like(a);
    add_batch(out, a, {a.size(-1)}, DType::Int32);
}

}  // namespace

Outputs linalg_solve_triangular(const Tensor&, const Tensor& B, bool, bool, bool) {
    Outputs out;
    out.like(B);
    return out;
}

Outputs linalg_solve(const Tensor& A, const Tensor& B, bool) {
    Outputs out;
    out.like(B);
    add_batch(out, A, {}, DType::Int32);
    add_factors(out, A);
    return out;
}

Outputs linalg_solve_again(const Tensor&, const Tensor&, const Tensor&, const Tensor& B, bool, bool) {
    Outputs out;
    out.like(B);
    return out;
}

Outputs linalg_inv(const Tensor& A) {
    Outputs out;
    out.like(A);
    add_batch(out, A, {}, DType::Int32);
    return out;
}

Outputs linalg_det(const Tensor& A) {
    Outputs out;
    add_batch(out, A, {}, A.dtype());
    add_factors(out, A);
    return out;
}

Outputs linalg_slogdet(const Tensor& A) {
    Outputs out;
    add_batch(out, A, {}, A.dtype());
    add_batch(out, A, {}, real_dtype(A.dtype()));
    add_factors(out, A);
    return out;
}

Outputs linalg_lstsq(const Tensor& A, const Tensor& B, double, int64_t driver) {
    enum { Gels, Gelsy, Gelsd, Gelss };
    Outputs out;
    add_batch(out, A, {A.size(-1), B.size(-1)}, A.dtype());
    if (driver == Gels) out.add(kInts<0>, DType::Int64, A.device());
    else add_batch(out, A, {}, DType::Int64);
    if (driver == Gels || driver == Gelsy) out.add(kInts<0>, real_dtype(A.dtype()), A.device());
    else add_batch(out, A, {std::min(A.size(-1), A.size(-2))}, real_dtype(A.dtype()));
    return out;
}

}  // namespace rushlight::rules
