// Matrix products with one or two sparse factors.
#include "ops/forms.h"
#include "rushlight/ops/_sparse_mm.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/addmm.h"
#include "rushlight/ops/addmv.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/bmm.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/cumsum.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/index_add.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/linear.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mm.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/mv.h"
#include "rushlight/ops/repeat_interleave.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/searchsorted.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/zeros.h"
#include "sparse/parts.h"
#include "sparse/stage.h"

namespace rushlight::sparse {
namespace {

void check_product(const char* op, const Tensor& a, const Tensor& b) {
    for (const Tensor* t : {&a, &b})
        if (is_sparse(*t) && (t->dim() != 2 || coordinates(*t).sparse_dim() != 2))
            refuse(op, *t, "a tensor that is not a matrix with two sparse dimensions");
    RL_CHECK(a.dim() == 2 && b.dim() == 2, throw_runtime, "%s: needs two matrices, got shapes %s and %s", op,
             to_string(a.sizes()).c_str(), to_string(b.sizes()).c_str());
    RL_CHECK(a.size(1) == b.size(0), throw_runtime,
             "%s: shapes %s and %s cannot be multiplied: %lld columns do not match %lld rows", op,
             to_string(a.sizes()).c_str(), to_string(b.sizes()).c_str(), (long long)a.size(1),
             (long long)b.size(0));
    RL_CHECK(a.dtype() == b.dtype(), throw_runtime, "%s: expected tensors of one dtype, got %s and %s", op,
             name(a.dtype()), name(b.dtype()));
}

// Multiplies a sparse matrix with `rows` rows and the given values at (row, col) by a dense matrix.
Tensor times_dense(const Tensor& row, const Tensor& col, const Tensor& values, const Tensor& dense,
                   int64_t rows) {
    if (is_floating(dense.dtype())) return ops::_sparse_mm(row, col, values, dense, rows);
    const int64_t shape[] = {rows, dense.size(1)};
    const Tensor products = ops::mul(ops::unsqueeze(values, 1), ops::index_select(dense, 0, col));
    return ops::index_add(ops::zeros(shape, dense.dtype(), dense.device()), 0, row, products);
}

// Multiplies each value of `a` by the values in one row of `b`, and adds the products. Their number depends on the
// stored values and not on the number of columns.
Tensor times_sparse(const Tensor& a, const Tensor& b) {
    const Coordinates x = coordinates(a), y = coalesced(b);
    const Tensor bounds = ops::arange(Scalar(y.size[0] + 1), DType::Int64, a.device());
    const Tensor starts = ops::searchsorted(y.along(0), bounds);
    const Tensor begin = ops::index_select(starts, 0, x.along(1));
    const Tensor count = ops::sub(ops::index_select(starts, 0, ops::add(x.along(1), Scalar(1))), begin);
    // For each product: the index of its factor among the values of `a`, and the number of earlier products with the
    // same factor.
    const Tensor of_a = ops::repeat_interleave(count);
    const Tensor first = ops::sub(ops::cumsum(count, 0), count);
    const Tensor nth = ops::sub(ops::arange(Scalar(of_a.numel()), DType::Int64, a.device()),
                                ops::index_select(first, 0, of_a));
    const Tensor of_b = ops::add(ops::index_select(begin, 0, of_a), nth);
    const Tensor indices[] = {ops::index_select(x.along(0), 0, of_a), ops::index_select(y.along(1), 0, of_b)};
    const Tensor values =
        ops::mul(ops::index_select(x.values, 0, of_a), ops::index_select(y.values, 0, of_b));
    const Tensor product =
        coalesce(from_coordinates({ops::stack(indices, 0), values, {x.size[0], y.size[1]}, false}));
    return in_layout(product, a);
}

Tensor multiply(const char* op, const Tensor& a, const Tensor& b) {
    check_product(op, a, b);
    // Both factors are dense if only the input of addmm or `out` is sparse.
    if (!is_sparse(a) && !is_sparse(b)) return ops::mm(a, b);
    if (is_sparse(a) && is_sparse(b)) return times_sparse(a, b);
    if (is_sparse(a)) {
        const Coordinates c = coordinates(a);
        return times_dense(c.along(0), c.along(1), c.values, b, c.size[0]);
    }
    const Coordinates c = coordinates(b);
    return ops::t(times_dense(c.along(1), c.along(0), c.values, ops::t(a), c.size[1]));
}

Tensor mm(const Tensor& a, const Tensor& b) { return multiply("mm", a, b); }

// Multiplies the matrices of a batch as the diagonal blocks of one sparse matrix.
Tensor bmm(const Tensor& a, const Tensor& b) {
    if (is_sparse(b)) refuse("bmm", b, "a sparse mat2");
    if (!is_sparse(a)) return ops::bmm(a, b);
    const Coordinates c = coordinates(a);
    if (c.sparse_dim() != 3 || c.ndim() != 3) refuse("bmm", a, "a tensor without three sparse dimensions");
    RL_CHECK(b.dim() == 3 && b.size(0) == a.size(0) && b.size(1) == a.size(2), throw_runtime,
             "bmm(mat2): must have the shape (%lld, %lld, p), got %s", (long long)a.size(0),
             (long long)a.size(2), to_string(b.sizes()).c_str());
    RL_CHECK(a.dtype() == b.dtype(), throw_runtime, "bmm: expected tensors of one dtype, got %s and %s",
             name(a.dtype()), name(b.dtype()));
    auto in_batch = [&](int64_t d) { return ops::add(ops::mul(c.along(0), Scalar(a.size(d))), c.along(d)); };
    const int64_t flat[] = {a.size(0) * a.size(2), b.size(2)}, shape[] = {a.size(0), a.size(1), b.size(2)};
    const Tensor product =
        times_dense(in_batch(1), in_batch(2), c.values, ops::reshape(b, flat), a.size(0) * a.size(1));
    return ops::reshape(product, shape);
}

Tensor mv(const Tensor& a, const Tensor& x) {
    RL_CHECK(!is_sparse(x) && x.dim() == 1, throw_runtime,
             "mv(vec): needs a dense vector, got layout %s, shape %s", layout_name(x),
             to_string(x.sizes()).c_str());
    const int64_t last[] = {1};
    return ops::squeeze(multiply("mv", a, ops::unsqueeze(x, 1)), last);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
    const int64_t first[] = {0};
    if (a.dim() == 2 && b.dim() == 1) return mv(a, b);
    if (a.dim() == 3 && b.dim() == 3) return bmm(a, b);
    if (a.dim() == 1 && b.dim() == 2 && !is_sparse(a))
        return ops::squeeze(multiply("matmul", ops::unsqueeze(a, 0), b), first);
    return multiply("matmul", a, b);
}

Tensor scaled(const Tensor& t, Scalar by) { return by.equals(1) ? t : ops::mul(t, by); }

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
    const Tensor product = scaled(multiply("addmm", a, b), alpha);
    RL_CHECK(input.dtype() == product.dtype(), throw_runtime,
             "addmm(input, mat1): must have the same dtype, got %s and %s", name(input.dtype()),
             name(product.dtype()));
    RL_CHECK(!is_sparse(product) || is_sparse(input), throw_not_implemented,
             "addmm(input): must be sparse if both matrices are sparse, got a dense tensor");
    if (is_sparse(input) && !is_sparse(product)) refuse("addmm", input, "a sparse input with a dense factor");
    if (!beta.equals(0)) return ops::add(scaled(input, beta), product);
    // With beta = 0 the input is not read, so it may contain infinities, but its shape must still fit.
    if (!is_sparse(input)) ops::expand(input, product.sizes());
    return product;
}

// In place, only a dense tensor can be the sum.
Tensor addmm_(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
    if (is_sparse(input)) refuse("addmm_", input, "a sparse input");
    return ops::copy_(input, addmm(input, a, b, beta, alpha));
}

Tensor addmv(const Tensor& input, const Tensor& a, const Tensor& x, Scalar beta, Scalar alpha) {
    if (is_sparse(input)) refuse("addmv", input, "a sparse input");
    const Tensor product = scaled(mv(a, x), alpha);
    RL_CHECK(input.dtype() == product.dtype(), throw_runtime,
             "addmv(input, mat): must have the same dtype, got %s and %s", name(input.dtype()),
             name(product.dtype()));
    return beta.equals(0) ? product : ops::add(scaled(input, beta), product);
}

Tensor addmv_(const Tensor& input, const Tensor& a, const Tensor& x, Scalar beta, Scalar alpha) {
    return ops::copy_(input, addmv(input, a, x, beta, alpha));
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
    if (is_sparse(input)) refuse("linear", input, "a sparse input");
    if (bias.defined() && is_sparse(bias)) refuse("linear", bias, "a sparse bias");
    RL_CHECK(input.dim() > 0, throw_runtime, "linear(input): needs at least 1 dimension, got a 0-d tensor");
    const int64_t flat[] = {-1, input.size(-1)};
    const Tensor rows = multiply("linear", ops::reshape(input, flat), ops::t(weight));
    std::vector<int64_t> shape(input.sizes().begin(), input.sizes().end());
    shape.back() = weight.size(0);
    const Tensor product = ops::reshape(rows, shape);
    return bias.defined() ? ops::add(product, bias) : product;
}

// Writes a dense product to a dense tensor, and a sparse product to a sparse tensor of the same layout.
Tensor written(const char* op, const Tensor& product, const Tensor& out) {
    RL_CHECK(
        is_sparse(product) == is_sparse(out) && (!is_sparse(out) || layout_of(out) == layout_of(product)),
        throw_runtime, "%s(out): needs layout %s, got %s", op, layout_name(product), layout_name(out));
    return is_sparse(out) ? ops::copy_(out, product, false) : op_copy_out(op, product, out);
}

Tensor bmm_out(const Tensor& a, const Tensor& b, const Tensor& out) { return written("bmm", bmm(a, b), out); }
Tensor mm_out(const Tensor& a, const Tensor& b, const Tensor& out) { return written("mm", mm(a, b), out); }
Tensor mv_out(const Tensor& a, const Tensor& x, const Tensor& out) { return written("mv", mv(a, x), out); }
Tensor matmul_out(const Tensor& a, const Tensor& b, const Tensor& out) {
    return written("matmul", matmul(a, b), out);
}
Tensor addmm_out(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha,
                 const Tensor& out) {
    return written("addmm", addmm(input, a, b, beta, alpha), out);
}
Tensor addmv_out(const Tensor& input, const Tensor& a, const Tensor& x, Scalar beta, Scalar alpha,
                 const Tensor& out) {
    return written("addmv", addmv(input, a, x, beta, alpha), out);
}

}  // namespace

void install_products() {
    RL_SPARSE(bmm_out, "bmm.out", bmm_out);
    RL_SPARSE(mm_out, "mm.out", mm_out);
    RL_SPARSE(mv_out, "mv.out", mv_out);
    RL_SPARSE(matmul_out, "matmul.out", matmul_out);
    RL_SPARSE(addmm_out, "addmm.out", addmm_out);
    RL_SPARSE(addmv_out, "addmv.out", addmv_out);
    RL_SPARSE(bmm, "bmm", bmm);
    RL_SPARSE(mm, "mm", mm);
    RL_SPARSE(mv, "mv", mv);
    RL_SPARSE(matmul, "matmul", matmul);
    RL_SPARSE(addmm, "addmm", addmm);
    RL_SPARSE(addmm_, "addmm_", addmm_);
    RL_SPARSE(addmv, "addmv", addmv);
    RL_SPARSE(addmv_, "addmv_", addmv_);
    RL_SPARSE(linear, "linear", linear);
}

}  // namespace rushlight::sparse
