// Sums, products, and functions f with f(0) = 0.
#include <algorithm>
#include <string>

#include "rushlight/ops/_sparse_mask_values.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/asin.h"
#include "rushlight/ops/asinh.h"
#include "rushlight/ops/atan.h"
#include "rushlight/ops/atanh.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/ceil.h"
#include "rushlight/ops/clamp.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/deg2rad.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/erf.h"
#include "rushlight/ops/expm1.h"
#include "rushlight/ops/floor.h"
#include "rushlight/ops/floor_divide.h"
#include "rushlight/ops/frac.h"
#include "rushlight/ops/index.h"
#include "rushlight/ops/index_add.h"
#include "rushlight/ops/index_add_.h"
#include "rushlight/ops/index_put.h"
#include "rushlight/ops/index_put_.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/isinf.h"
#include "rushlight/ops/isnan.h"
#include "rushlight/ops/isneginf.h"
#include "rushlight/ops/isposinf.h"
#include "rushlight/ops/log1p.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/pow.h"
#include "rushlight/ops/rad2deg.h"
#include "rushlight/ops/relu.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/round.h"
#include "rushlight/ops/sgn.h"
#include "rushlight/ops/sign.h"
#include "rushlight/ops/signbit.h"
#include "rushlight/ops/sin.h"
#include "rushlight/ops/sinh.h"
#include "rushlight/ops/sqrt.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/tan.h"
#include "rushlight/ops/tanh.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/trunc.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/promotion.h"
#include "sparse/parts.h"
#include "sparse/stage.h"

namespace rushlight::sparse {
namespace {

bool is_sparse_operand(const TensorOrScalar& v) { return v.is_tensor() && is_sparse(v.tensor()); }

DType joint(const Tensor& a, const Tensor& b) {
    const TensorOrScalar both[] = {a, b};
    return result_dtype(both);
}
Tensor as(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : ops::to(t, dtype); }

void check_same_size(const char* op, const Tensor& a, const Tensor& b) {
    RL_CHECK(std::ranges::equal(a.sizes(), b.sizes()), throw_runtime,
             "%s: operands must have the same shape if one is sparse, got %s and %s", op,
             to_string(a.sizes()).c_str(), to_string(b.sizes()).c_str());
}

bool same_indices(const Tensor& a, const Tensor& b) {
    const SparseParts &x = sparse_parts(a), &y = sparse_parts(b);
    return x.layout == y.layout && x.indices.is_same(y.indices) && x.plain.is_same(y.plain) &&
           std::ranges::equal(x.values.sizes(), y.values.sizes());
}

Tensor times(const Tensor& values, Scalar alpha) {
    return alpha.is_integral() && alpha.to<int64_t>() == 1 ? values : ops::mul(values, alpha);
}

// --- sums ---

Tensor add_sparse(const char* op, const Tensor& a, const Tensor& b, Scalar alpha) {
    check_same_size(op, a, b);
    const DType dtype = joint(a, b);
    if (same_indices(a, b))
        return with_values(a, ops::add(ops::_sparse_values(a), ops::_sparse_values(b), alpha));
    Coordinates x = coordinates(a), y = coordinates(b);
    RL_CHECK(x.sparse_dim() == y.sparse_dim(), throw_runtime,
             "%s: the numbers of sparse dimensions must be equal, got %lld and %lld", op,
             (long long)x.sparse_dim(), (long long)y.sparse_dim());
    const bool both = x.coalesced && y.coalesced;
    const Tensor indices[] = {x.indices, y.indices},
                 values[] = {as(x.values, dtype), as(times(y.values, alpha), dtype)};
    const Tensor sum = from_coordinates({ops::cat(indices, 1), ops::cat(values, 0), x.size, false});
    const Tensor merged = both ? coalesce(sum) : sum;
    return layout_of(a) == layout_of(b) ? in_layout(merged, a) : merged;
}

// Returns the sum of the elements, if there are no sparse dimensions.
Tensor total(const Tensor& values) { return ops::sum(values, kInts<0>, false, values.dtype()); }

// Returns the coordinates as one tensor for each sparse dimension.
std::vector<Tensor> rows_of(const Coordinates& c) {
    std::vector<Tensor> rows;
    for (int64_t d = 0; d < c.sparse_dim(); ++d) rows.push_back(c.along(d));
    return rows;
}

Tensor add_to_dense(const char* op, const Tensor& dense, const Tensor& t, Scalar alpha) {
    check_same_size(op, dense, t);
    const Coordinates c = coordinates(t);
    const DType dtype = joint(dense, t);
    const Tensor start = as(dense, dtype), values = as(c.values, dtype);
    if (c.sparse_dim() == 0) return ops::add(start, total(values), alpha);
    if (c.sparse_dim() == 1) return ops::index_add(start, 0, c.along(0), values, alpha);
    return ops::index_put(start, rows_of(c), times(values, alpha), true);
}

void add_to_dense_(const char* op, const Tensor& dense, const Tensor& t, Scalar alpha) {
    check_same_size(op, dense, t);
    const Coordinates c = coordinates(t);
    RL_CHECK(can_cast(joint(dense, t), dense.dtype()), throw_runtime,
             "%s: result type %s can't be cast to the desired output type %s", op, name(joint(dense, t)),
             name(dense.dtype()));
    const Tensor values = as(c.values, dense.dtype());
    if (c.sparse_dim() == 0) ops::add_(dense, total(values), alpha);
    else if (c.sparse_dim() == 1) ops::index_add_(dense, 0, c.along(0), values, alpha);
    else ops::index_put_(dense, rows_of(c), times(values, alpha), true);
}

Tensor add(const TensorOrScalar& a, const TensorOrScalar& b, Scalar alpha) {
    const char* op = "add";
    if (!a.is_tensor() || !b.is_tensor())
        refuse(op, a.is_tensor() ? a.tensor() : b.tensor(), "a sum with a number");
    if (is_sparse_operand(a) && is_sparse_operand(b)) return add_sparse(op, a.tensor(), b.tensor(), alpha);
    if (is_sparse_operand(b)) return add_to_dense(op, a.tensor(), b.tensor(), alpha);
    return add_to_dense(op, times(b.tensor(), alpha), a.tensor(), Scalar(1));
}

void replace_parts(const char* op, const Tensor& t, const Tensor& result) {
    RL_CHECK(can_cast(result.dtype(), t.dtype()), throw_runtime,
             "%s: result type %s can't be cast to the desired output type %s", op, name(result.dtype()),
             name(t.dtype()));
    check_write(op, t);
    RL_CHECK(!result.requires_grad(), throw_not_implemented,
             "%s: an operand requires grad, but in-place operators on sparse tensors have no gradients\n"
             "hint: use the form that returns a new tensor",
             op);
    set_sparse_parts(t, sparse_parts(as(result, t.dtype())));
}

Tensor add_(const Tensor& a, const TensorOrScalar& b, Scalar alpha) {
    const char* op = "add_";
    if (!b.is_tensor()) refuse(op, a, "a sum with a number");
    if (!is_sparse(a)) {
        add_to_dense_(op, a, b.tensor(), alpha);
        return a;
    }
    if (!is_sparse(b.tensor())) refuse(op, a, "adding a dense tensor in place");
    replace_parts(op, a, add_sparse(op, a, b.tensor(), alpha));
    return a;
}

Scalar negative(Scalar alpha) {
    if (alpha.is_complex()) return Scalar(-alpha.to<Complex<double>>());
    return alpha.is_integral() ? Scalar(-alpha.to<int64_t>()) : Scalar(-alpha.to<double>());
}

Tensor sub(const TensorOrScalar& a, const TensorOrScalar& b, Scalar alpha) {
    return add(a, b, negative(alpha));
}
Tensor sub_(const Tensor& a, const TensorOrScalar& b, Scalar alpha) { return add_(a, b, negative(alpha)); }

// --- products ---

// Returns `v` if it is a number or a dense 0-d tensor, by which all values can be multiplied or divided.
std::optional<TensorOrScalar> as_number(const TensorOrScalar& v) {
    if (!v.is_tensor() || (!is_sparse(v.tensor()) && v.tensor().dim() == 0)) return v;
    return {};
}

// Returns the elements of `other`, broadcast to the shape of `t`, at the positions of `t`.
Tensor values_at(const char* op, const Tensor& other, const Tensor& t) {
    RL_CHECK(other.dim() <= t.dim(), throw_not_implemented,
             "%s: a sparse tensor of shape %s does not broadcast to a dense tensor of shape %s", op,
             to_string(t.sizes()).c_str(), to_string(other.sizes()).c_str());
    for (int64_t d = 1; d <= other.dim(); ++d)
        RL_CHECK(other.size(-d) == 1 || other.size(-d) == t.size(-d), throw_runtime,
                 "%s: shape %s does not broadcast to the sparse tensor's shape %s", op,
                 to_string(other.sizes()).c_str(), to_string(t.sizes()).c_str());
    const Coordinates c = coordinates(t);
    // A dense tensor is indexed directly, without expanding it first.
    std::vector<Tensor> rows;
    const int64_t missing = t.dim() - other.dim();
    std::vector<int64_t> sizes(static_cast<size_t>(missing), 1);
    sizes.insert(sizes.end(), other.sizes().begin(), other.sizes().end());
    std::vector<Tensor> at;
    for (int64_t d = 0; d < c.sparse_dim(); ++d)
        at.push_back(sizes[static_cast<size_t>(d)] == 1 ? ops::mul(c.along(d), Scalar(0)) : c.along(d));
    const Tensor from = ops::reshape(other, sizes);
    // Without sparse dimensions, every value is at the only position.
    const Tensor found =
        at.empty() ? ops::index_select(ops::unsqueeze(from, 0), 0, c.positions()) : ops::index(from, at);
    const SparseParts& parts = sparse_parts(t);
    return has_blocks(parts.layout) ? ops::reshape(found, parts.values.sizes()) : found;
}

Tensor mul_sparse(const Tensor& a, const Tensor& b) {
    check_same_size("mul", a, b);
    if (same_indices(a, b) && sparse_parts(a).coalesced)
        return with_values(a, ops::mul(ops::_sparse_values(a), ops::_sparse_values(b)));
    // Positions of `a` at which `b` has no value get the value zero.
    const Tensor x = from_coordinates(coalesced(a));
    const Tensor values = ops::mul(ops::_sparse_values(x), ops::_sparse_mask_values(b, x));
    Coordinates product = coordinates(x);
    product.values = values;
    return in_layout(from_coordinates(product), a);
}

Tensor mul(const TensorOrScalar& a, const TensorOrScalar& b) {
    if (is_sparse_operand(a) && is_sparse_operand(b)) return mul_sparse(a.tensor(), b.tensor());
    const Tensor& t = is_sparse_operand(a) ? a.tensor() : b.tensor();
    const TensorOrScalar& other = is_sparse_operand(a) ? b : a;
    const Tensor values = ops::_sparse_values(t);
    if (const auto number = as_number(other)) return with_values(t, ops::mul(values, *number));
    return with_values(t, ops::mul(values, values_at("mul", other.tensor(), t)));
}

// Multiplication or division by a number that needs no gradient writes the values in place.
Tensor scale_(const char* op, const Tensor& a, const TensorOrScalar& b,
              Tensor (*values_op)(const Tensor&, const TensorOrScalar&),
              Tensor (*sparse_op)(const TensorOrScalar&, const TensorOrScalar&)) {
    // A dense tensor gets the elements of the product, which are zero where the sparse tensor has no value.
    if (!is_sparse(a)) return ops::copy_(a, to_dense(sparse_op(a, b)));
    if (as_number(b) && !(b.is_tensor() && b.tensor().requires_grad())) {
        check_write(op, a);
        values_op(make_alias(sparse_parts(a).values), b);
    } else {
        replace_parts(op, a, sparse_op(a, b));
    }
    return a;
}

Tensor mul_(const Tensor& a, const TensorOrScalar& b) { return scale_("mul_", a, b, &ops::mul_, &mul); }

Tensor div(const TensorOrScalar& a, const TensorOrScalar& b) {
    if (is_sparse_operand(b)) refuse("div", b.tensor(), "division by a sparse tensor");
    const Tensor& t = a.tensor();
    const Tensor values = ops::_sparse_values(t);
    if (const auto number = as_number(b)) return with_values(t, ops::div(values, *number));
    return with_values(t, ops::div(values, values_at("div", b.tensor(), t)));
}

Tensor div_(const Tensor& a, const TensorOrScalar& b) { return scale_("div_", a, b, &ops::div_, &div); }

// --- functions with f(0) = 0 ---

using Function = Tensor (*)(const Tensor&);

// If the function is not linear, duplicate values at one position are added first.
template <Function f>
Tensor each(const Tensor& t) {
    const Tensor once = layout_of(t) == Layout::Coo ? coalesce(t) : t;
    return with_values(once, f(ops::_sparse_values(once)));
}
template <Function f>
Tensor each_linear(const Tensor& t) {
    return with_values(t, f(ops::_sparse_values(t)));
}
// The in-place form of a function.
template <Function f>
Tensor in_place(const Operator& op, StageMask, const Tensor& t) {
    replace_parts(op.name, t, f(t));
    return t;
}

void install_in_place(const std::string& name, void* function) {
    if (find_operator(name.c_str())) install(name.c_str(), function);
}

Tensor pow(const TensorOrScalar& a, const TensorOrScalar& b) {
    if (b.is_tensor())
        refuse("pow", is_sparse_operand(a) ? a.tensor() : b.tensor(), "an exponent that is a tensor");
    RL_CHECK(!b.scalar().is_complex() && b.scalar().to<double>() > 0, throw_not_implemented,
             "pow(exponent): must be positive and real for a sparse tensor");
    const Tensor once = layout_of(a.tensor()) == Layout::Coo ? coalesce(a.tensor()) : a.tensor();
    return with_values(once, ops::pow(ops::_sparse_values(once), b.scalar()));
}

Tensor floor_divide(const TensorOrScalar& a, const TensorOrScalar& b) {
    if (is_sparse_operand(b)) refuse("floor_divide", b.tensor(), "division by a sparse tensor");
    const auto number = as_number(b);
    if (!number) refuse("floor_divide", a.tensor(), "division by a dense tensor that is not 0-d");
    const Tensor once = layout_of(a.tensor()) == Layout::Coo ? coalesce(a.tensor()) : a.tensor();
    return with_values(once, ops::floor_divide(ops::_sparse_values(once), *number));
}

template <Tensor (*f)(const TensorOrScalar&, const TensorOrScalar&)>
Tensor binary_in_place(const Operator& op, StageMask, const Tensor& a, const TensorOrScalar& b) {
    if (!is_sparse(a)) refuse(op.name, b.tensor(), "changing a dense tensor in place");
    replace_parts(op.name, a, f(a, b));
    return a;
}

Tensor clamp(const Tensor& t, const std::optional<TensorOrScalar>& min,
             const std::optional<TensorOrScalar>& max) {
    auto fits = [](const std::optional<TensorOrScalar>& limit, double sign) {
        return !limit || (!limit->is_tensor() && sign * limit->scalar().to<double>() >= 0);
    };
    RL_CHECK(fits(min, -1) && fits(max, 1), throw_not_implemented,
             "clamp(min, max): must satisfy min <= 0 <= max for a sparse tensor, so that zeros stay zeros\n"
             "hint: use to_dense()");
    const Tensor once = layout_of(t) == Layout::Coo ? coalesce(t) : t;
    return with_values(once, ops::clamp(ops::_sparse_values(once), min, max));
}

Tensor clamp_(const Tensor& t, const std::optional<TensorOrScalar>& min,
              const std::optional<TensorOrScalar>& max) {
    replace_parts("clamp_", t, clamp(t, min, max));
    return t;
}

}  // namespace

#define RL_WITH_IN_PLACE(name, form)                                 \
    (install(#name, reinterpret_cast<void*>(&AtStage<&form>::call)), \
     install_in_place(#name "_", reinterpret_cast<void*>(&in_place<&form>)))
#define RL_EACH(name) RL_WITH_IN_PLACE(name, each<&ops::name>)
#define RL_LINEAR(name) RL_WITH_IN_PLACE(name, each_linear<&ops::name>)

void install_elementwise() {
    RL_SPARSE(add, "add", add);
    RL_SPARSE(add_, "add_", add_);
    RL_SPARSE(sub, "sub", sub);
    RL_SPARSE(sub_, "sub_", sub_);
    RL_SPARSE(mul, "mul", mul);
    RL_SPARSE(mul_, "mul_", mul_);
    RL_SPARSE(div, "div", div);
    RL_SPARSE(div_, "div_", div_);
    RL_SPARSE(floor_divide, "floor_divide", floor_divide);
    RL_SPARSE(pow, "pow", pow);
    install("floor_divide_", reinterpret_cast<void*>(&binary_in_place<&floor_divide>));
    install("pow_", reinterpret_cast<void*>(&binary_in_place<&pow>));
    RL_SPARSE(clamp, "clamp", clamp);
    RL_SPARSE(clamp_, "clamp_", clamp_);
    RL_LINEAR(neg);
    RL_LINEAR(conj);
    RL_LINEAR(deg2rad);
    RL_LINEAR(rad2deg);
    RL_EACH(abs);
    RL_EACH(asin);
    RL_EACH(asinh);
    RL_EACH(atan);
    RL_EACH(atanh);
    RL_EACH(ceil);
    RL_EACH(erf);
    RL_EACH(expm1);
    RL_EACH(floor);
    RL_EACH(frac);
    RL_EACH(isinf);
    RL_EACH(isnan);
    RL_EACH(isneginf);
    RL_EACH(isposinf);
    RL_EACH(log1p);
    RL_EACH(relu);
    RL_EACH(round);
    RL_EACH(sgn);
    RL_EACH(sign);
    RL_EACH(signbit);
    RL_EACH(sin);
    RL_EACH(sinh);
    RL_EACH(sqrt);
    RL_EACH(square);
    RL_EACH(tan);
    RL_EACH(tanh);
    RL_EACH(trunc);
}

}  // namespace rushlight::sparse
