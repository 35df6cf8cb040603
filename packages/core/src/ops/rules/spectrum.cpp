#include "bodies/spectrum.h"

namespace rushlight::rules {
Outputs linalg_eigh(const Tensor& A, bool, bool vectors) {
    Outputs out;
    add_batch(out, A, {A.size(-1)}, real_dtype(A.dtype()));
    if (vectors) out.like(A);
    else out.add(kInts<0>, A.dtype(), A.device());
    return out;
}

Outputs linalg_eig(const Tensor& A, bool vectors) {
    Outputs out;
    add_batch(out, A, {A.size(-1)}, complex_dtype(A.dtype()));
    if (vectors) out.add(A.sizes(), complex_dtype(A.dtype()), A.device());
    else out.add(kInts<0>, complex_dtype(A.dtype()), A.device());
    return out;
}

Outputs linalg_svd(const Tensor& A, bool full, bool vectors) {
    const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
    Outputs out;
    if (vectors) add_batch(out, A, {m, full ? m : k}, A.dtype());
    else out.add(kInts<0>, A.dtype(), A.device());
    add_batch(out, A, {k}, real_dtype(A.dtype()));
    if (vectors) add_batch(out, A, {full ? n : k, n}, A.dtype());
    else out.add(kInts<0>, A.dtype(), A.device());
    return out;
}

}  // namespace rushlight::rules
