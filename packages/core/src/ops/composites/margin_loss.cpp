// Losses for similarity, ranking and counts.
#include <cmath>
#include <numbers>

#include "bodies/margin_loss.h"
#include "ops/broadcasting.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/cumsum.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/exp.h"
#include "rushlight/ops/gather.h"
#include "rushlight/ops/gt.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/log.h"
#include "rushlight/ops/log_sigmoid.h"
#include "rushlight/ops/logical_and.h"
#include "rushlight/ops/logical_not.h"
#include "rushlight/ops/lt.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/minimum.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/norm.h"
#include "rushlight/ops/relu.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/scatter_add.h"
#include "rushlight/ops/sqrt.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {
namespace {

Tensor reduce(const char* op, const Tensor& losses, int64_t reduction) {
    RL_CHECK(reduction >= 0 && reduction <= 2, throw_value,
             "%s(reduction): must be 0 (none), 1 (mean) or 2 (sum), got %lld", op, (long long)reduction);
    if (reduction == 0) return losses;
    return reduction == 1 ? ops::mean(losses) : ops::sum(losses);
}

// As in PyTorch, this hinge passes the gradient at the margin itself. The multi-class losses use relu, whose gradient is
// zero there.
Tensor hinge(const Tensor& t) { return ops::clamp_min(t, Scalar(0.0)); }
Tensor sum_last(const Tensor& t) { return ops::sum(t, kInts<-1>); }

// Returns the distance between rows. `eps` keeps the gradient finite for equal rows.
Tensor distance(const Tensor& a, const Tensor& b, double p, double eps) {
    return ops::norm(ops::add(ops::sub(a, b), eps), Scalar(p), kInts<-1>);
}

// Returns (batch, classes) or (classes) as (batch, classes).
Tensor rows_of(const char* op, const Tensor& input) {
    RL_CHECK(input.dim() <= 2 && (input.dim() == 0 || input.size(-1) > 0), throw_runtime,
             "%s(input): needs (batch, classes) or (classes), got shape %s", op,
             to_string(input.sizes()).c_str());
    // A 0-d tensor is the score of a single class.
    return input.dim() == 2 ? input : ops::reshape(input, kInts<1, -1>);
}

void check_int64(const char* op, const Tensor& target) {
    RL_CHECK(target.dtype() == DType::Int64, throw_runtime, "%s(target): needs int64 classes, got dtype %s",
             op, name(target.dtype()));
}

}  // namespace

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, int64_t reduction) {
    const char* op = "hinge_embedding_loss";
    broadcast_shapes(op, "input", input.sizes(), "target", target.sizes());
    Tensor far = ops::where(ops::ne(target, 1), hinge(ops::sub(margin, input)), 0);
    return reduce(op, ops::add(far, ops::where(ops::ne(target, -1), input, 0)), reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           int64_t reduction) {
    const char* op = "margin_ranking_loss";
    RL_CHECK(input1.dim() == input2.dim(), throw_runtime,
             "%s(input1, input2): must have the same number of dimensions, got shapes %s and %s", op,
             to_string(input1.sizes()).c_str(), to_string(input2.sizes()).c_str());
    return reduce(op, hinge(ops::sub(margin, ops::mul(target, ops::sub(input1, input2)))), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             int64_t reduction) {
    const char* op = "cosine_embedding_loss";
    RL_CHECK(
        target.dim() <= 1 && input1.dim() == target.dim() + 1 && input2.dim() == input1.dim(), throw_runtime,
        "%s(input1, input2, target): needs two inputs (batch, features) and a target (batch), or two inputs "
        "(features) and a target (), got shapes %s, %s and %s",
        op, to_string(input1.sizes()).c_str(), to_string(input2.sizes()).c_str(),
        to_string(target.sizes()).c_str());
    // Squares of small vectors underflow in float16, and so does the epsilon for vectors of length zero. Squares of integers
    // overflow their dtypes.
    auto floating = [](DType t) { return is_differentiable(t) ? t : default_dtype(); };
    const DType dtype = promote(floating(input1.dtype()), floating(input2.dtype()));
    const bool whole = is_integral(input1.dtype(), true) || is_integral(input2.dtype(), true);
    const DType wide = whole ? promote(dtype, DType::Float64) : compute_dtype(dtype);
    if (input1.dtype() != wide || input2.dtype() != wide)
        return ops::to(
            cosine_embedding_loss(ops::to(input1, wide), ops::to(input2, wide), target, margin, reduction),
            dtype);
    constexpr double kEps = 1e-12;  // avoids division by zero for vectors of length zero
    auto length = [](const Tensor& t) { return ops::add(sum_last(ops::square(t)), kEps); };
    Tensor cosine =
        ops::div(sum_last(ops::mul(input1, input2)), ops::sqrt(ops::mul(length(input1), length(input2))));
    Tensor alike = ops::where(ops::eq(target, 1), ops::sub(1, cosine), 0);
    Tensor unlike = ops::where(ops::eq(target, -1), hinge(ops::sub(cosine, margin)), 0);
    return reduce(op, ops::add(alike, unlike), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
    const char* op = "triplet_margin_loss";
    RL_CHECK(
        anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), throw_runtime,
        "%s(anchor, positive, negative): must have the same number of dimensions, got shapes %s, %s and %s",
        op, to_string(anchor.sizes()).c_str(), to_string(positive.sizes()).c_str(),
        to_string(negative.sizes()).c_str());
    RL_CHECK(margin > 0, throw_value, "%s(margin): must be positive, got %g", op, margin);
    Tensor near = distance(anchor, positive, p, eps), far = distance(anchor, negative, p, eps);
    if (swap) far = ops::minimum(far, distance(positive, negative, p, eps));
    return reduce(op, hinge(ops::add(ops::sub(near, far), margin)), reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        int64_t reduction) {
    Tensor losses = log_input ? ops::sub(ops::exp(input), ops::mul(target, input))
                              : ops::sub(input, ops::mul(target, ops::log(ops::add(input, eps))));
    if (full) {
        // Where Stirling's approximation is not used, its logarithm must be finite, so that the gradient is zero and not
        // NaN.
        Tensor large = ops::gt(target, 1), t = ops::where(large, target, 1);
        Tensor stirling = ops::add(ops::sub(ops::mul(t, ops::log(t)), t),
                                   ops::mul(ops::log(ops::mul(t, 2 * std::numbers::pi)), 0.5));
        if (stirling.dtype() != losses.dtype()) stirling = ops::_to_copy(stirling, losses.dtype());
        losses = ops::add(losses, ops::where(large, stirling, 0));
    }
    return reduce("poisson_nll_loss", losses, reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
    broadcast_shapes("soft_margin_loss", "input", input.sizes(), "target", target.sizes());
    return reduce("soft_margin_loss", ops::neg(ops::log_sigmoid(ops::mul(target, input))), reduction);
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, Scalar p, Scalar margin,
                         const Tensor& weight, int64_t reduction) {
    const char* op = "multi_margin_loss";
    Tensor x = rows_of(op, is_differentiable(input.dtype()) ? input : ops::_to_copy(input, default_dtype()));
    const int64_t classes = x.size(1);
    check_int64(op, target);
    RL_CHECK(target.numel() == x.size(0) && target.dim() <= 1, throw_runtime,
             "%s(target): needs a class for each of %lld rows, got shape %s", op, (long long)x.size(0),
             to_string(target.sizes()).c_str());
    const double power = p.to<double>();
    RL_CHECK(power == 1 || power == 2, throw_value, "%s(p): must be 1 or 2, got %g", op, power);
    RL_CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes), throw_runtime,
             "%s(weight): needs shape (%lld,), got %s", op, (long long)classes,
             to_string(weight.defined() ? weight.sizes() : IntList()).c_str());
    const int64_t column[] = {x.size(0), 1};
    Tensor t = ops::reshape(target, column);
    Tensor z = ops::relu(ops::add(ops::sub(x, ops::gather(x, 1, t)), margin.to<double>()));
    if (power == 2) z = ops::square(z);
    if (weight.defined())
        z = ops::mul(z, ops::reshape(ops::index_select(weight, 0, ops::reshape(t, kInts<-1>)), column));
    z = ops::where(ops::eq(ops::arange(Scalar(classes), std::nullopt, x.device()), t), 0, z);
    Tensor losses = ops::div(sum_last(z), static_cast<double>(classes));
    return reduce(op, target.dim() == 0 ? ops::squeeze(losses, kInts<0>) : losses, reduction);
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
    const char* op = "multilabel_margin_loss";
    Tensor x = rows_of(op, is_differentiable(input.dtype()) ? input : ops::_to_copy(input, default_dtype()));
    check_int64(op, target);
    RL_CHECK(
        std::equal(input.sizes().begin(), input.sizes().end(), target.sizes().begin(), target.sizes().end()),
        throw_runtime, "%s(target): needs the input's shape %s, got %s", op, to_string(input.sizes()).c_str(),
        to_string(target.sizes()).c_str());
    Tensor t = input.dim() == 2 ? target : ops::reshape(target, kInts<1, -1>);
    // Only the classes before the first -1 are targets. Classes after it are ignored, but must be valid, because
    // scatter_add checks them.
    Tensor ends = ops::eq(t, -1);
    Tensor counts = ops::eq(ops::cumsum(ops::to(ends, DType::Int64), 1), 0);
    t = ops::where(ends, 0, t);
    Tensor is_target = ops::gt(ops::scatter_add(ops::zeros_like(t), 1, t, ops::to(counts, DType::Int64)), 0);
    Tensor wanted = ops::unsqueeze(ops::gather(x, 1, t), 2);
    Tensor z = ops::relu(ops::add(ops::sub(ops::unsqueeze(x, 1), wanted), 1));
    Tensor pairs =
        ops::logical_and(ops::unsqueeze(counts, 2), ops::logical_not(ops::unsqueeze(is_target, 1)));
    Tensor losses =
        ops::div(ops::sum(ops::where(pairs, z, 0), kInts<-2, -1>), static_cast<double>(x.size(1)));
    return reduce(op, input.dim() < 2 ? ops::squeeze(losses, kInts<0>) : losses, reduction);
}

}  // namespace rushlight::composites
