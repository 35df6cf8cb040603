// Sums of products over chosen dimensions, by matrix products.
#include <algorithm>

#include "bodies/contraction.h"
#include "ops/copying.h"
#include "ops/forms.h"
#include "ops/matrices.h"
#include "ops/views.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/addcmul.h"
#include "rushlight/ops/addmm.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/dot.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mm.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/outer.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/roll.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {

Tensor tensordot(const Tensor& a, const Tensor& b, IntList dims_a, IntList dims_b) {
    RL_CHECK(dims_a.size() == dims_b.size(), throw_runtime,
             "tensordot(dims): must list equally many dimensions for `a` and `b`, got %s and %s",
             to_string(dims_a).c_str(), to_string(dims_b).c_str());
    bool summed_a[kMaxDims] = {}, summed_b[kMaxDims] = {};
    std::vector<int64_t> order_a, order_b, inner_a, inner_b, alone_a, alone_b, shape;
    for (size_t i = 0; i < dims_a.size(); ++i) {
        const int d = wrap_dim("tensordot", dims_a[i], a.dim()),
                  e = wrap_dim("tensordot", dims_b[i], b.dim());
        RL_CHECK(
            a.dim() > 0 && b.dim() > 0 && !summed_a[d] && !summed_b[e], throw_runtime,
            "tensordot(dims): each list must name dimensions of its tensor without repetition, got %s and %s",
            to_string(dims_a).c_str(), to_string(dims_b).c_str());
        summed_a[d] = summed_b[e] = true;
        const int64_t m = a.sizes()[d], n = b.sizes()[e];
        RL_CHECK(
            m == n || m == 1 || n == 1, throw_runtime,
            "tensordot(a, b, dims): paired dimensions must have the same size, but dimension %d of `a` has size %lld, and dimension %d of `b` has size %lld",
            d, (long long)m, e, (long long)n);
        inner_a.push_back(d);
        inner_b.push_back(e);
        if (m != n) (m == 1 ? alone_b : alone_a).push_back(m == 1 ? e : d);
    }
    // If a summed dimension has size 1 in one operand, the other operand is summed over that dimension first.
    Tensor left = alone_a.empty() ? a : ops::sum(a, alone_a, true, a.dtype());
    Tensor right = alone_b.empty() ? b : ops::sum(b, alone_b, true, b.dtype());
    int64_t rows = 1, columns = 1, depth = 1;
    for (int64_t d = 0; d < a.dim(); ++d) {
        if (summed_a[d]) continue;
        order_a.push_back(d);
        shape.push_back(a.sizes()[d]);
        rows *= a.sizes()[d];
    }
    for (size_t i = 0; i < inner_a.size(); ++i) depth *= left.sizes()[inner_a[i]];
    order_a.insert(order_a.end(), inner_a.begin(), inner_a.end());
    order_b = inner_b;
    for (int64_t d = 0; d < b.dim(); ++d) {
        if (summed_b[d]) continue;
        order_b.push_back(d);
        shape.push_back(b.sizes()[d]);
        columns *= b.sizes()[d];
    }
    const int64_t left_sizes[] = {rows, depth}, right_sizes[] = {depth, columns};
    Tensor made = ops::mm(ops::reshape(ops::permute(left, order_a), left_sizes),
                          ops::reshape(ops::permute(right, order_b), right_sizes));
    return ops::reshape(made, shape);
}

Tensor inner(const Tensor& input, const Tensor& other) {
    if (input.dim() == 0 || other.dim() == 0) return ops::mul(input, other);
    RL_CHECK(input.size(-1) == other.size(-1), throw_runtime,
             "inner(input, other): the last dimensions must have the same size, got shapes %s and %s",
             to_string(input.sizes()).c_str(), to_string(other.sizes()).c_str());
    return tensordot(input, other, kInts<-1>, kInts<-1>);
}

Tensor vdot(const Tensor& input, const Tensor& other) { return ops::dot(ops::conj(input), other); }

Tensor linalg_cross(const Tensor& input, const Tensor& other, int64_t dim) {
    RL_CHECK(input.dim() == other.dim(), throw_runtime,
             "linalg.cross(input, other): must have the same number of dimensions, got shapes %s and %s",
             to_string(input.sizes()).c_str(), to_string(other.sizes()).c_str());
    const int64_t d = wrap_dim("linalg.cross", dim, input.dim());
    RL_CHECK(input.dim() > 0 && input.sizes()[d] == 3 && other.sizes()[d] == 3, throw_runtime,
             "linalg.cross(dim): dimension %lld must have size 3, got shapes %s and %s", (long long)d,
             to_string(input.sizes()).c_str(), to_string(other.sizes()).c_str());
    if (const DType compute = compute_dtype(promote(input.dtype(), other.dtype()));
        compute != promote(input.dtype(), other.dtype())) {
        // Computes in float32 and rounds once: the difference of two products rounded to half precision would lose digits.
        const Tensor made = linalg_cross(ops::to(input, compute), ops::to(other, compute), dim);
        return ops::to(made, promote(input.dtype(), other.dtype()));
    }
    const IntList along(&d, 1);
    // c[i] = a[i + 1] b[i + 2] - a[i + 2] b[i + 1], indices modulo 3
    return ops::sub(ops::mul(ops::roll(input, kInts<-1>, along), ops::roll(other, kInts<-2>, along)),
                    ops::mul(ops::roll(input, kInts<-2>, along), ops::roll(other, kInts<-1>, along)));
}

Tensor cross(const Tensor& input, const Tensor& other, std::optional<int64_t> dim) {
    if (dim) return linalg_cross(input, other, *dim);
    const auto three = std::ranges::find(input.sizes(), int64_t{3});
    RL_CHECK(three != input.sizes().end(), throw_runtime, "cross(input): no dimension of shape %s has size 3",
             to_string(input.sizes()).c_str());
    return linalg_cross(input, other, three - input.sizes().begin());
}

Tensor addr(const Tensor& input, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) {
    // As in PyTorch, the number of dimensions does not affect the dtype. The product is not rounded to the vectors' dtype.
    const DType dtype = promote(promote(vec1.dtype(), vec2.dtype()), input.dtype());
    if (!is_differentiable(dtype)) {
        RL_CHECK(!alpha.is_floating() && !beta.is_floating(), throw_runtime,
                 "addr(beta, alpha): must be integers for tensors of dtype %s\n"
                 "hint: convert the tensors first",
                 name(dtype));
        if (dtype == DType::Bool) {
            alpha = Scalar(alpha.to<bool>());
            beta = Scalar(beta.to<bool>());
        }
    }
    if (const DType compute = compute_dtype(dtype); compute != dtype) {  // rounds once
        auto widened = [&](const Tensor& t) { return ops::to(t, compute); };
        return ops::to(addr(widened(input), widened(vec1), widened(vec2), beta, alpha), dtype);
    }
    const Tensor left = ops::to(vec1, dtype), right = ops::to(vec2, dtype);
    if (is_floating(dtype) && vec1.dim() == 1 && vec2.dim() == 1 && !beta.equals(0)) {
        // One pass over the result. The product is not stored.
        const int64_t shape[] = {left.size(0), right.size(0)};
        Tensor addend = ops::expand(ops::to(input, dtype), shape, false);
        check_weights("addr", left, beta, alpha);
        if (!beta.equals(1)) addend = ops::mul(addend, beta);
        return ops::addcmul(addend, ops::unsqueeze(left, 1), right, alpha);
    }
    Tensor made = ops::outer(left, right);
    check_weights("addr", made, beta, alpha);
    if (!alpha.equals(1)) made = ops::mul(made, alpha);
    Tensor addend =
        ops::expand(ops::to(input, dtype), made.sizes(), false);  // checked even if it is not read
    if (beta.equals(0)) return made;
    return ops::add(made, beta.equals(1) ? addend : ops::mul(addend, beta));
}

Tensor addr_(const Tensor& input, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) {
    const DType dtype = input.dtype();
    const auto fits = [&](const Tensor& v, int64_t dim) {
        return v.dim() == 1 && v.dtype() == dtype && v.device() == input.device() &&
               v.size(0) == input.size(dim);
    };
    const bool zero = beta.equals(0);
    if (is_floating(dtype) && compute_dtype(dtype) == dtype && input.dim() == 2 && fits(vec1, 0) &&
        fits(vec2, 1) && !(zero && !alpha.equals(1)) && !differentiated(input, vec1, vec2)) {
        // Writes the result directly.
        check_inplace("addr", input, input);
        check_weights("addr", input, beta, alpha);
        const Tensor left = ops::unsqueeze(vec1, 1);
        if (zero) return ops::mul_out(left, vec2, input);
        if (beta.equals(1)) return ops::addcmul_out(input, left, vec2, alpha, input);
        if (overlaps(input, vec1) || overlaps(input, vec2))
            return ops::addcmul_out(ops::mul(input, beta), left, vec2, alpha, input);
        return ops::addcmul_out(ops::mul_out(input, beta, input), left, vec2, alpha, input);
    }
    return op_copy_inplace("addr", input, addr(unwritten(input, vec1, vec2), vec1, vec2, beta, alpha));
}

Tensor addbmm(const Tensor& input, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
    RL_CHECK(batch1.dim() == 3 && batch2.dim() == 3, throw_runtime,
             "addbmm(batch1, batch2): need 3 dimensions, got shapes %s and %s",
             to_string(batch1.sizes()).c_str(), to_string(batch2.sizes()).c_str());
    RL_CHECK(batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1), throw_runtime,
             "addbmm(batch1, batch2): must have shapes (b, n, m) and (b, m, p), got %s and %s",
             to_string(batch1.sizes()).c_str(), to_string(batch2.sizes()).c_str());
    // Joins the batch and the inner dimension, so that one matrix product sums over both.
    const int64_t inner = batch1.size(0) * batch1.size(2);
    const int64_t left[] = {batch1.size(1), inner}, right[] = {inner, batch2.size(2)};
    return ops::addmm(input, ops::reshape(ops::transpose(batch1, 0, 1), left), ops::reshape(batch2, right),
                      beta, alpha);
}

namespace {

// Repeats the elements of the last dimension for kron: (..., a) to (..., a b), each element `b` times if `each` is true. If
// `each` is false, (..., b) to (..., a b): the whole row `a` times.
Tensor spread(const Tensor& t, int64_t a, int64_t b, bool each) {
    std::vector<int64_t> apart = t.shape(), pairs = t.shape(), joined = t.shape();
    apart.insert(each ? apart.end() : apart.end() - 1, 1);
    pairs.back() = a;
    pairs.push_back(b);
    joined.back() = a * b;
    return ops::reshape(ops::expand(ops::reshape(t, apart), pairs, false), joined);
}

}  // namespace

Tensor kron(const Tensor& input, const Tensor& other) {
    const int64_t n = std::max(input.dim(), other.dim());
    std::vector<int64_t> left, right, joined;
    for (int64_t d = -n; d < 0; ++d) {
        const int64_t a = -d <= input.dim() ? input.size(d) : 1, b = -d <= other.dim() ? other.size(d) : 1;
        left.insert(left.end(), {a, 1});
        right.insert(right.end(), {1, b});
        int64_t both;
        RL_CHECK(!__builtin_mul_overflow(a, b, &both), throw_runtime,
                 "kron(input, other): the result for shapes %s and %s would have too many elements",
                 to_string(input.sizes()).c_str(), to_string(other.sizes()).c_str());
        joined.push_back(both);
    }
    RL_CHECK(left.size() <= kMaxDims, throw_runtime,
             "kron(input, other): must have at most %d dimensions, got %lld", kMaxDims / 2, (long long)n);
    // If the rows of `other` are short, the overhead per row exceeds the cost of the multiplications. If each row is used
    // often, the operands are repeated so that the rows become longer.
    constexpr int64_t kShort = 64, kOften = 4;
    if (std::min(input.dim(), other.dim()) > 1 && other.size(-1) < kShort && joined.back() > 0 &&
        std::min(input.numel() / input.size(-1), other.numel() / other.size(-1)) >= kOften) {
        const int64_t a = input.size(-1), b = other.size(-1);
        left.pop_back();
        right.pop_back();
        left.back() = right.back() = a * b;
        return ops::reshape(ops::mul(ops::reshape(spread(input, a, b, true), left),
                                     ops::reshape(spread(other, a, b, false), right)),
                            joined);
    }
    return ops::reshape(ops::mul(ops::reshape(input, left), ops::reshape(other, right)), joined);
}

}  // namespace rushlight::composites
