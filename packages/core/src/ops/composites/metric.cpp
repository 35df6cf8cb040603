#include <cmath>

#include "bodies/metric.h"
#include "ops/broadcasting.h"
#include "ops/differentiated.h"
#include "ops/views.h"
#include "rushlight/ops/_cdist.h"
#include "rushlight/ops/_cdist_gradient.h"
#include "rushlight/ops/_cdist_rows.h"
#include "rushlight/ops/_cdist_slopes.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/broadcast_to.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/gt.h"
#include "rushlight/ops/logical_or.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/norm.h"
#include "rushlight/ops/pow.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/sign.h"
#include "rushlight/ops/sqrt.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {

Tensor dist(const Tensor& input, const Tensor& other, Scalar p) {
    return ops::norm(ops::sub(input, other), p, std::nullopt, false);
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::string_view compute_mode) {
    for (const Tensor* x : {&x1, &x2}) {
        const char* which = x == &x1 ? "x1" : "x2";
        RL_CHECK(x->dim() >= 2, throw_runtime, "cdist(%s): needs at least 2 dimensions, got shape %s", which,
                 to_string(x->sizes()).c_str());
        RL_CHECK(is_floating(x->dtype()), throw_runtime, "cdist(%s): needs a floating-point tensor, got %s",
                 which, name(x->dtype()));
        RL_CHECK(x->dtype() == DType::Float32 || x->dtype() == DType::Float64, throw_not_implemented,
                 "cdist(%s): not defined for dtype %s", which, name(x->dtype()));
    }
    RL_CHECK(x1.dtype() == x2.dtype(), throw_runtime,
             "cdist(x1, x2): must have the same dtype, got %s and %s", name(x1.dtype()), name(x2.dtype()));
    const int64_t rows = x1.size(-2), others = x2.size(-2), n = x1.size(-1);
    RL_CHECK(n == x2.size(-1), throw_runtime,
             "cdist(x1, x2): must have the same last size, got %lld and %lld", (long long)n,
             (long long)x2.size(-1));
    RL_CHECK(p >= 0, throw_runtime, "cdist(p): must not be negative, got %g", p);
    const bool always = compute_mode == "use_mm_for_euclid_dist",
               never = compute_mode == "donot_use_mm_for_euclid_dist";
    RL_CHECK(
        always || never || compute_mode == "use_mm_for_euclid_dist_if_necessary", throw_value,
        "cdist(compute_mode): '%.*s' is not one of use_mm_for_euclid_dist_if_necessary, use_mm_for_euclid_dist, "
        "donot_use_mm_for_euclid_dist",
        static_cast<int>(compute_mode.size()), compute_mode.data());
    std::vector<int64_t> batch = broadcast_shapes("cdist", "x1", x1.sizes().first(x1.sizes().size() - 2),
                                                  "x2", x2.sizes().first(x2.sizes().size() - 2));
    int64_t count = 1;
    for (int64_t size : batch) count *= size;
    auto flat = [&](const Tensor& x, int64_t length) {
        std::vector<int64_t> shape = batch;
        shape.insert(shape.end(), {length, n});
        const int64_t joined[] = {count, length, n};
        return ops::reshape(ops::broadcast_to(x, shape), joined);
    };
    const bool product = p == 2 && (always || (!never && (rows > 25 || others > 25)));
    Tensor far = ops::_cdist(flat(x1, rows), flat(x2, others), p, product);
    batch.insert(batch.end(), {rows, others});
    return ops::reshape(far, batch);
}

Tensor _cdist(const Tensor& x1, const Tensor& x2, double p, bool product) {
    if (!product) return ops::_cdist_rows(x1, x2, p);
    // |a - b|^2 = |a|^2 + |b|^2 - 2 ab
    Tensor squares = ops::add(ops::sum(ops::square(x1), kInts<-1>, true),
                              ops::transpose(ops::sum(ops::square(x2), kInts<-1>, true), -1, -2));
    Tensor joint = ops::mul(ops::matmul(x1, ops::transpose(x2, -1, -2)), Scalar(2));
    return ops::sqrt(ops::clamp_min(ops::sub(squares, joint), Scalar(0)));
}

Tensor _cdist_slopes(const Tensor& x1, const Tensor& x2, double p, const Tensor& result) {
    Tensor apart = ops::sub(ops::unsqueeze(x1, -2), ops::unsqueeze(x2, -3)), far = ops::unsqueeze(result, -1);
    if (p == 0) return ops::zeros_like(apart);
    if (p == 1) return ops::sign(apart);
    if (std::isinf(p)) return ops::mul(ops::sign(apart), ops::eq(ops::abs(apart), far));
    Tensor flat = ops::eq(far, Scalar(0));
    Tensor over = ops::div(apart, ops::where(flat, Scalar(1), far));
    if (p == 2) return ops::where(flat, Scalar(0), over);
    Tensor none = ops::logical_or(flat, ops::eq(apart, Scalar(0)));
    Tensor safe = ops::where(none, Scalar(1), over);
    return ops::where(none, Scalar(0), ops::mul(ops::sign(safe), ops::pow(ops::abs(safe), Scalar(p - 1))));
}

// Note [Differentiable composites]
Tensor _cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                       const Tensor& result) {
    if (!differentiated(grad, x1, x2, result)) return ops::_cdist_gradient(grad, x1, x2, p, result);
    return ops::sum(ops::mul(ops::unsqueeze(grad, -1), ops::_cdist_slopes(x1, x2, p, result)), kInts<-2>);
}

Tensor renorm(const Tensor& input, Scalar p, int64_t dim, Scalar maxnorm) {
    RL_CHECK(input.dim() >= 2, throw_runtime, "renorm(input): needs at least 2 dimensions, got shape %s",
             to_string(input.sizes()).c_str());
    RL_CHECK(is_differentiable(input.dtype()), throw_runtime,
             "renorm(input): needs a floating-point tensor, got %s", name(input.dtype()));
    RL_CHECK(p.to<double>() > 0, throw_runtime, "renorm(p): must be positive, got %g", p.to<double>());
    RL_CHECK(maxnorm.to<double>() >= 0, throw_runtime, "renorm(maxnorm): must not be negative, got %g",
             maxnorm.to<double>());
    const int d = wrap_dim("renorm", dim, input.dim());
    std::vector<int64_t> others;
    for (int64_t k = 0; k < input.dim(); ++k)
        if (k != d) others.push_back(k);
    // Half types are computed in float32: the norm of a row may exceed their range even if the quotients of the elements
    // and the norm do not.
    const Tensor x = ops::to(input, compute_dtype(input.dtype()));
    const Tensor length = ops::norm(x, p, IntList(others), true);
    const Tensor longer = ops::gt(length, maxnorm);
    // Where the norm is not used, it is replaced by 1, so that its derivative is zero and not zero times infinity.
    const Tensor counting = ops::add(ops::where(longer, length, Scalar(1)), Scalar(1e-7));
    return ops::to(ops::mul(x, ops::where(longer, ops::div(maxnorm, counting), Scalar(1))), input.dtype());
}

}  // namespace rushlight::composites
