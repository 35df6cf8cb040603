#include <cmath>

#include "bodies/power_backward.h"
#include "rushlight/ops/_shift.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/cumprod.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/flip.h"
#include "rushlight/ops/ge.h"
#include "rushlight/ops/isfinite.h"
#include "rushlight/ops/isinf.h"
#include "rushlight/ops/log.h"
#include "rushlight/ops/logical_and.h"
#include "rushlight/ops/logical_not.h"
#include "rushlight/ops/logical_or.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/pow.h"
#include "rushlight/ops/prod.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/reciprocal.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {
namespace {

// Returns, for each element, the product of the other elements along `dim`.
Tensor product_of_others(const Tensor& t, int64_t dim) {
    const Tensor backwards = ops::flip(ops::cumprod(ops::flip(t, {dim}), dim), {dim});
    return ops::mul(ops::_shift(ops::cumprod(t, dim), dim, 1, 1), ops::_shift(backwards, dim, -1, 1));
}

// Returns the exponents minus one. Small integer types are converted to int64, which can represent them all. The smallest
// int64 is not decremented, because it has no predecessor.
Tensor one_less(const Tensor& exponent) {
    if (!is_integral(exponent.dtype(), true)) return ops::sub(exponent, 1);
    // The power does not matter where the exponent is 0, because the derivative is multiplied by the exponent.
    if (exponent.dtype() == DType::UInt64) return ops::sub(ops::clamp_min(exponent, 1), 1);
    return ops::sub(ops::clamp_min(ops::to(exponent, DType::Int64), INT64_MIN + 1), 1);
}

}  // namespace

// The gradient of a factor is the product of the other factors, which is result / factor. If the factor is zero, its
// gradient is the product of the nonzero factors, times the other factors that are zero. With such factors the gradient is
// zero, but its derivatives are not.
Tensor prod_backward(const Tensor& grad, const Tensor& given, const Tensor& result,
                     std::optional<int64_t> dim, bool keepdim) {
    // In half precision, products and squares of elements could be infinite or 0, and gradients NaN.
    const Tensor input = ops::to(given, compute_dtype(given.dtype()));
    auto raise = [&](const Tensor& t) {
        return dim && !keepdim && input.dim() > 0 ? ops::unsqueeze(t, *dim) : t;
    };
    // The derivative is the product of the other elements, which is the quotient of the result and the element, except if
    // the element is 0 or infinite.
    const Tensor apart = ops::logical_or(ops::eq(input, 0), ops::isinf(input));
    Tensor rest = ops::prod(ops::where(apart, 1, input), dim, dim.has_value());
    const Tensor factors = ops::where(apart, input, 1);
    const Tensor others =
        dim && input.dim() > 0
            ? product_of_others(factors, *dim)
            : ops::reshape(product_of_others(ops::reshape(factors, {-1}), 0), input.sizes());
    Tensor at_factors = ops::mul(rest, others);
    const bool same = input.dtype() == given.dtype();
    const Tensor whole = same ? raise(result) : ops::prod(input, dim, dim.has_value());
    Tensor elsewhere = ops::div(whole, ops::where(apart, 1, input));
    return ops::to(ops::mul(raise(grad), ops::where(apart, at_factors, elsewhere)),
                   promote(grad.dtype(), given.dtype()));
}

Tensor pow_backward_input(const Tensor& grad, const TensorOrScalar& input, const TensorOrScalar& exponent) {
    RL_CHECK(input.is_tensor(), throw_type,
             "pow_backward_input(input): must be a tensor, because a number has no gradient");
    if (exponent.is_tensor()) {
        // The derivative at an exponent of 0 is 0. It is computed like other derivatives, so that its derivative with
        // respect to the exponent is right. It is set to 0 only where the base has no finite inverse or the gradient is
        // not finite: zero times infinity would be NaN there.
        const Tensor finite = ops::isfinite(ops::mul(grad, ops::reciprocal(input.tensor())));
        const Tensor flat = ops::logical_and(ops::eq(exponent.tensor(), 0), ops::logical_not(finite));
        const Tensor base = ops::where(flat, 1, input);
        Tensor derivative = ops::mul(exponent, ops::pow(base, one_less(exponent.tensor())));
        return ops::where(flat, 0, ops::mul(grad, derivative));
    }
    Scalar e = exponent.scalar();
    if (e.equals(0)) return ops::zeros_like(grad);
    if (e.equals(1)) return grad;
    if (e.equals(2)) return ops::mul(ops::mul(grad, input), 2);
    if (e.is_complex()) {
        const auto z = e.to<Complex<double>>();
        return ops::mul(grad, ops::mul(ops::pow(input, Scalar(z - Complex<double>(1))), e));
    }
    // The smallest int64 has no predecessor, so it is converted to float64.
    Scalar less = e.is_floating() || e.to<int64_t>() == INT64_MIN ? Scalar(e.to<double>() - 1)
                                                                  : Scalar(e.to<int64_t>() - 1);
    return ops::mul(grad, ops::mul(ops::pow(input, less), e));
}

Tensor pow_backward_exponent(const Tensor& grad, const TensorOrScalar& input, const TensorOrScalar& exponent,
                             const Tensor& result) {
    RL_CHECK(exponent.is_tensor(), throw_type,
             "pow_backward_exponent(exponent): must be a tensor, because a number has no gradient");
    auto zero_power = [&] {  // where the derivative of 0 ** exponent is 0
        return ops::ge(ops::real(exponent.tensor()), 0);
    };
    if (!input.is_tensor()) {
        const Scalar number = input.scalar();
        Tensor derivative;
        if (is_complex(result.dtype())) {  // also for a negative number, whose logarithm is complex
            const Tensor log = ops::log(make_scalar(number, DType::Complex128));
            derivative = ops::mul(grad, ops::mul(result, ops::_to_copy(log, result.dtype(), std::nullopt)));
        } else {
            derivative = ops::mul(grad, ops::mul(result, std::log(number.to<double>())));
        }
        return number.equals(0) ? ops::where(zero_power(), 0, derivative) : derivative;
    }
    const Tensor base = input.tensor().dtype() == result.dtype() || is_complex(input.tensor().dtype())
                            ? input.tensor()
                            : ops::_to_copy(input.tensor(), result.dtype(), std::nullopt);
    const Tensor flat = ops::logical_and(ops::eq(input.tensor(), 0), zero_power());
    Tensor derivative = ops::mul(grad, ops::mul(result, ops::log(ops::where(flat, 1, base))));
    return ops::where(flat, 0, derivative);
}

}  // namespace rushlight::composites
