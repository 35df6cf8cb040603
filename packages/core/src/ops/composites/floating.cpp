#include <limits>

#include "bodies/floating.h"
#include "rushlight/ops/_frexp_exponent.h"
#include "rushlight/ops/_frexp_mantissa.h"
#include "rushlight/ops/_nan_to_num.h"
#include "rushlight/ops/_nextafter.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/imag.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/view_as_complex.h"
#include "rushlight/ops/view_as_real.h"
#include "tensor/promotion.h"

namespace rushlight::composites {
namespace {

struct Limits {
    double largest, least;
    int64_t digits;  // bits of the mantissa, without the leading one
};
Limits limits(DType t) {
    switch (t) {
        case DType::Float16: return {65504, 0x1p-24, 10};
        case DType::BFloat16: return {0x1.fep127, 0x1p-133, 7};
        case DType::Float32: return {std::numeric_limits<float>::max(), 0x1p-149, 23};
        default: return {std::numeric_limits<double>::max(), 0x1p-1074, 52};
    }
}

}  // namespace

Tensor nextafter(const Tensor& input, const Tensor& other) {
    const TensorOrScalar both[] = {input, other};
    Limits l = limits(result_dtype(both));
    return ops::_nextafter(input, other, l.digits, l.least);
}

std::tuple<Tensor, Tensor> frexp(const Tensor& input) {
    RL_CHECK(is_floating(input.dtype()), throw_runtime, "frexp(input): needs a floating dtype, got %s",
             name(input.dtype()));
    return {ops::_frexp_mantissa(input), ops::_to_copy(ops::_frexp_exponent(input), DType::Int32)};
}

Tensor nan_to_num(const Tensor& input, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
    if (is_complex(input.dtype()))
        return ops::view_as_complex(composites::nan_to_num(ops::view_as_real(input), nan, posinf, neginf));
    if (!is_floating(input.dtype())) return ops::clone(input);
    double largest = limits(input.dtype()).largest;
    return ops::_nan_to_num(input, nan.value_or(0), posinf.value_or(largest), neginf.value_or(-largest));
}

Tensor nan_to_num_(const Tensor& input, std::optional<double> nan, std::optional<double> posinf,
                   std::optional<double> neginf) {
    if (is_complex(input.dtype())) {
        composites::nan_to_num_(ops::view_as_real(input), nan, posinf, neginf);
    } else if (is_floating(input.dtype())) {
        const double largest = limits(input.dtype()).largest;
        ops::_nan_to_num_(input, nan.value_or(0), posinf.value_or(largest), neginf.value_or(-largest));
    }
    return input;
}

Tensor isreal(const Tensor& input) {
    return is_complex(input.dtype()) ? ops::eq(ops::imag(input), Scalar(0))
                                     : ops::ones_like(input, DType::Bool);
}

}  // namespace rushlight::composites
