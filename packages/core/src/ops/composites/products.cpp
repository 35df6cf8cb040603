#include "bodies/products.h"
#include "ops/matrices.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/addmm.h"
#include "rushlight/ops/baddbmm.h"
#include "rushlight/ops/bmm.h"
#include "rushlight/ops/dot.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/mm.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/mv.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/squeeze_copy.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {
namespace {

[[noreturn, gnu::cold]] void fail_shapes(const Tensor& a, const Tensor& b, const char* why) {
    throw_runtime("matmul(input, other): shapes %s and %s cannot be multiplied: %s",
                  to_string(a.sizes()).c_str(), to_string(b.sizes()).c_str(), why);
}

// Multiplies (..., n, k) by a matrix or vector without batch dimensions, by joining the leading dimensions to rows.
Tensor times_one(const Tensor& a, const Tensor& b) {
    std::vector<int64_t> sizes(a.sizes().begin(), a.sizes().end() - 1);
    int64_t rows = 1;
    for (int64_t s : sizes) rows *= s;
    const int64_t joined[] = {rows, a.size(-1)};
    Tensor flat = ops::reshape(a, joined);
    if (b.dim() == 2) sizes.push_back(b.size(1));
    return ops::reshape(b.dim() == 1 ? ops::mv(flat, b) : ops::mm(flat, b), sizes);
}

Tensor batched(const Tensor& a, const Tensor& b) {
    // Leading dimensions are broadcast and joined.
    std::vector<int64_t> batch;
    const int64_t lead = std::max(a.dim(), b.dim()) - 2;
    int64_t count = 1;
    for (int64_t d = 0; d < lead; ++d) {
        int64_t in_a = a.dim() - 2 - lead + d, in_b = b.dim() - 2 - lead + d;
        int64_t m = in_a < 0 ? 1 : a.sizes()[in_a], n = in_b < 0 ? 1 : b.sizes()[in_b];
        if (m != n && m != 1 && n != 1) fail_shapes(a, b, "the leading dimensions do not broadcast");
        batch.push_back(m == 1 ? n : m);
        count *= batch.back();
    }
    auto flat = [&](const Tensor& t) {
        std::vector<int64_t> sizes = batch;
        sizes.insert(sizes.end(), t.sizes().end() - 2, t.sizes().end());
        const int64_t joined[] = {count, t.size(-2), t.size(-1)};
        return ops::reshape(ops::expand(t, sizes, false), joined);
    };
    Tensor product = ops::bmm(flat(a), flat(b));
    batch.push_back(a.size(-2));
    batch.push_back(b.size(-1));
    return ops::reshape(product, batch);
}

}  // namespace

Tensor matmul(const Tensor& input, const Tensor& other) {
    const int64_t m = input.dim(), n = other.dim();
    if (m == 2 && n == 2) return ops::mm(input, other);
    if (m == 0 || n == 0) fail_shapes(input, other, "both need at least 1 dimension");
    if (m == 1 && n == 1) return ops::dot(input, other);
    if (m == 2 && n == 1) return ops::mv(input, other);
    if (m == 1 && n == 2) return ops::mv(ops::t(other), input);
    if (input.size(-1) != other.size(n == 1 ? -1 : -2))
        fail_shapes(input, other, "the inner dimensions differ");
    if (n <= 2) return times_one(input, other);
    if (m == 1) return ops::squeeze(batched(ops::unsqueeze(input, 0), other), kInts<-2>);
    if (m == 3 && n == 3 && input.size(0) == other.size(0)) return ops::bmm(input, other);
    return batched(input, other);
}

Tensor outer(const Tensor& input, const Tensor& vec2) {
    RL_CHECK(input.dim() == 1 && vec2.dim() == 1, throw_runtime,
             "outer(input, vec2): needs two vectors, got shapes %s and %s", to_string(input.sizes()).c_str(),
             to_string(vec2.sizes()).c_str());
    return ops::mul(ops::unsqueeze(input, 1), vec2);
}

Tensor addmv(const Tensor& input, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) {
    RL_CHECK(mat.dim() == 2 && vec.dim() == 1 && mat.size(1) == vec.size(0), throw_runtime,
             "addmv(mat, vec): must have shapes (n, m) and (m), got %s and %s",
             to_string(mat.sizes()).c_str(), to_string(vec.sizes()).c_str());
    const int64_t rows = mat.size(0);
    RL_CHECK(input.dim() == 0 || (input.dim() == 1 && (input.size(0) == 1 || input.size(0) == rows)),
             throw_runtime, "addmv(input): must broadcast to shape (%lld), got shape %s", (long long)rows,
             to_string(input.sizes()).c_str());
    check_same_dtype("addmv", "input", input, "mat", mat);
    check_same_dtype("addmv", "mat", mat, "vec", vec);
    check_weights("addmv", mat, beta, alpha);
    // A matrix of one column, so that the sum is rounded once.
    const Tensor column = input.dim() == 0 ? input : ops::unsqueeze(input, 1);
    return ops::squeeze_copy(ops::addmm(column, mat, ops::unsqueeze(vec, 1), beta, alpha), kInts<1>);
}

namespace {

// Checks the dtype of the result: it must be the dtype of the factors, or float32 for factors of 16 bits.
void check_out_dtype(const char* op, const Tensor& factor, DType out_dtype) {
    const DType d = factor.dtype();
    RL_CHECK(
        out_dtype == d || (out_dtype == DType::Float32 && is_floating(d) && itemsize(d) == 2), throw_runtime,
        "%s(out_dtype): must be %s for factors of %s, or float32 for factors of float16 or bfloat16, got %s",
        op, name(d), name(d), name(out_dtype));
}

}  // namespace

// Widening the factors is exact, and sums are accumulated in float32 in any case, so only the final rounding is omitted.
Tensor mm_dtype(const Tensor& input, const Tensor& mat2, DType out_dtype) {
    check_out_dtype("mm", input, out_dtype);
    return ops::mm(ops::to(input, out_dtype), ops::to(mat2, out_dtype));
}
Tensor bmm_dtype(const Tensor& input, const Tensor& mat2, DType out_dtype) {
    check_out_dtype("bmm", input, out_dtype);
    return ops::bmm(ops::to(input, out_dtype), ops::to(mat2, out_dtype));
}
Tensor addmm_dtype(const Tensor& input, const Tensor& mat1, const Tensor& mat2, DType out_dtype, Scalar beta,
                   Scalar alpha) {
    check_out_dtype("addmm", mat1, out_dtype);
    return ops::addmm(ops::to(input, out_dtype), ops::to(mat1, out_dtype), ops::to(mat2, out_dtype), beta,
                      alpha);
}
Tensor baddbmm_dtype(const Tensor& input, const Tensor& batch1, const Tensor& batch2, DType out_dtype,
                     Scalar beta, Scalar alpha) {
    check_out_dtype("baddbmm", batch1, out_dtype);
    return ops::baddbmm(ops::to(input, out_dtype), ops::to(batch1, out_dtype), ops::to(batch2, out_dtype),
                        beta, alpha);
}

}  // namespace rushlight::composites
