// Losses that compare element by element.
#include "bodies/elementwise_loss.h"
#include "ops/broadcasting.h"
#include "ops/element_check.h"
#include "ops/numbers.h"
#include "rushlight/ops/_binary_cross_entropy.h"
#include "rushlight/ops/_huber.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/exp.h"
#include "rushlight/ops/log.h"
#include "rushlight/ops/log1p.h"
#include "rushlight/ops/log_sigmoid.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {
namespace {

Tensor reduce(const char* op, const Tensor& losses, int64_t reduction) {
    RL_CHECK(reduction >= 0 && reduction <= 2, throw_value,
             "%s(reduction): must be 0 (none), 1 (mean) or 2 (sum), got %lld", op, (long long)reduction);
    if (reduction == 0) return losses;
    return reduction == 1 ? ops::mean(losses, std::nullopt, false, std::nullopt)
                          : ops::sum(losses, std::nullopt, false, std::nullopt);
}

void check_real(const char* op, const char* argument, const Tensor& t) {
    RL_CHECK(!t.defined() || !is_complex(t.dtype()), throw_runtime, "%s(%s): must be real, got dtype %s", op,
             argument, name(t.dtype()));
}

Tensor difference(const char* op, const Tensor& input, const Tensor& target) {
    broadcast_shapes(op, "input", input.sizes(), "target", target.sizes());  // an error names the loss
    return ops::sub(input, target);
}
Tensor distance(const char* op, const Tensor& input, const Tensor& target) {
    return ops::abs(difference(op, input, target));
}

Tensor huber(const char* op, const Tensor& input, const Tensor& target, double bend) {
    broadcast_shapes(op, "input", input.sizes(), "target", target.sizes());
    return ops::_huber(input, target, Scalar(bend));
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
    const DType common = promote(input.dtype(), target.dtype());
    RL_CHECK(common != DType::Bool, throw_not_implemented, "mse_loss: not defined for dtype bool");
    // Bools cannot be subtracted. They are converted to 0 and 1 in the other operand's dtype.
    auto numbers = [common](const Tensor& t) { return t.dtype() == DType::Bool ? ops::to(t, common) : t; };
    return reduce("mse_loss", ops::square(difference("mse_loss", numbers(input), numbers(target))),
                  reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
    return reduce("l1_loss", distance("l1_loss", input, target), reduction);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, int64_t reduction, double beta) {
    RL_CHECK(beta >= 0, throw_runtime, "smooth_l1_loss(beta): must be at least 0, got %g", beta);
    if (beta == 0) return reduce("smooth_l1_loss", distance("smooth_l1_loss", input, target), reduction);
    const Tensor losses = huber("smooth_l1_loss", input, target, beta);
    return reduce("smooth_l1_loss", beta == 1 ? losses : ops::mul(losses, 1 / beta), reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, int64_t reduction, double delta) {
    RL_CHECK(delta > 0, throw_runtime, "huber_loss(delta): must be positive, got %g", delta);
    return reduce("huber_loss", huber("huber_loss", input, target, delta), reduction);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            int64_t reduction) {
    check_real("binary_cross_entropy", "target", target);
    check_real("binary_cross_entropy", "weight", weight);
    check_elements(
        "binary_cross_entropy", "input", input, Required::Probability,
        "use binary_cross_entropy_with_logits, which applies the sigmoid itself, for other inputs");
    check_elements("binary_cross_entropy", "target", target, Required::Probability);
    Tensor losses = ops::_binary_cross_entropy(input, target);
    return reduce("binary_cross_entropy", weight.defined() ? ops::mul(losses, weight) : losses, reduction);
}

Tensor _binary_cross_entropy(const Tensor& input, const Tensor& target) {
    const Tensor chances = as_int64_if_integral(input), labels = as_int64_if_integral(target);
    Tensor hit = ops::mul(labels, ops::clamp_min(ops::log(chances), Scalar(-100.0)));
    Tensor miss =
        ops::mul(ops::sub(1, labels), ops::clamp_min(ops::log1p(ops::neg(chances)), Scalar(-100.0)));
    return ops::neg(ops::add(hit, miss));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, int64_t reduction) {
    Tensor logs = ops::log_sigmoid(input);
    const Tensor labels = as_int64_if_integral(target);
    if (pos_weight.defined())
        logs = ops::mul(logs, ops::add(ops::mul(ops::sub(as_int64_if_integral(pos_weight), 1), labels), 1));
    Tensor losses = ops::sub(ops::mul(ops::sub(1, labels), input), logs);
    return reduce("binary_cross_entropy_with_logits", weight.defined() ? ops::mul(losses, weight) : losses,
                  reduction);
}

Tensor kl_div(const Tensor& input, const Tensor& target, int64_t reduction, bool log_target) {
    if (log_target) {
        const Tensor difference = ops::sub(as_int64_if_integral(target), as_int64_if_integral(input));
        return reduce("kl_div", ops::mul(ops::exp(target), difference), reduction);
    }
    // 0 log(0) is 0, and its gradient is 0.
    Tensor logs = ops::log(ops::where(ops::ne(target, Scalar(0.0)), target, 1));
    return reduce("kl_div", ops::mul(target, ops::sub(logs, input)), reduction);
}

}  // namespace rushlight::composites
