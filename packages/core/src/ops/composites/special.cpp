#include "bodies/special.h"
#include "ops/forms.h"
#include "rushlight/ops/_logit.h"
#include "rushlight/ops/_polygamma.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/clamp.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/digamma.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/isinf.h"
#include "rushlight/ops/le.h"
#include "rushlight/ops/lgamma.h"
#include "rushlight/ops/masked_fill.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/sin.h"
#include "rushlight/ops/sinc.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {

Tensor polygamma(int64_t n, const Tensor& input) {
    RL_CHECK(n >= 0, throw_runtime, "polygamma(n): must not be negative, got %lld", (long long)n);
    return n ? ops::_polygamma(input, n) : ops::digamma(input);
}
Tensor polygamma_(const Tensor& input, int64_t n) {
    Tensor result = polygamma(n, unwritten(input));
    RL_CHECK(can_cast(result.dtype(), input.dtype()), throw_runtime,
             "polygamma_: a result of dtype %s cannot be written to a tensor of dtype %s",
             name(result.dtype()), name(input.dtype()));
    return ops::copy_(input, result);
}

Tensor mvlgamma(const Tensor& input, int64_t p) {
    RL_CHECK(p >= 1, throw_runtime, "mvlgamma(p): must be at least 1, got %lld", (long long)p);
    RL_CHECK(p <= 1 << 20, throw_runtime, "mvlgamma(p): must be at most 2^20, got %lld", (long long)p);
    Tensor sum = ops::lgamma(input);
    for (int64_t i = 1; i < p; ++i)
        sum = ops::add(sum, ops::lgamma(ops::sub(input, Scalar(0.5 * static_cast<double>(i)))));
    constexpr double kLogPi = 1.1447298858494002;
    return p == 1 ? sum : ops::add(sum, Scalar(0.25 * kLogPi * static_cast<double>(p * (p - 1))));
}

Tensor special_spherical_bessel_j0(const Tensor& input) {
    RL_CHECK(!is_complex(input.dtype()), throw_not_implemented,
             "special.spherical_bessel_j0: not defined for dtype %s", name(input.dtype()));
    // sinc(x) is sin(pi x) / (pi x), and its derivatives are accurate near 0, so it is used there. Far from 0, it is not
    // used, because the division of x by pi would lose digits of x.
    constexpr double kOverPi = 0.3183098861837907;
    const Tensor turns = ops::mul(input, Scalar(kOverPi));
    const Tensor near = ops::le(ops::abs(turns), Scalar(kOverPi));
    const Tensor far = ops::where(near, Scalar(1), input);
    const Tensor result = ops::where(near, ops::sinc(turns), ops::div(ops::sin(far), far));
    return ops::masked_fill(result, ops::isinf(input), Scalar(0));  // the limit
}

Tensor logit(const Tensor& input, std::optional<double> eps) {
    RL_CHECK(!is_complex(input.dtype()), throw_not_implemented, "logit: not defined for dtype %s",
             name(input.dtype()));
    if (!eps || *eps < 0) return ops::_logit(input);
    const Tensor x = is_floating(input.dtype()) ? input : ops::_to_copy(input, default_dtype());
    return ops::_logit(ops::clamp(x, TensorOrScalar(*eps), TensorOrScalar(1 - *eps)));
}

Tensor _no_gradient(const Tensor&, std::string_view op, std::string_view argument) {
    throw_not_implemented(
        "%.*s: the derivative with respect to %.*s is not implemented\n"
        "hint: call detach() on this argument if it is a constant",
        static_cast<int>(op.size()), op.data(), static_cast<int>(argument.size()), argument.data());
}

}  // namespace rushlight::composites
