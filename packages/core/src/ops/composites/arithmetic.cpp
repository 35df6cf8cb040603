#include "bodies/arithmetic.h"
#include "rushlight/ops/_clamp.h"
#include "rushlight/ops/_div_trunc.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clamp_max.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/floor_divide.h"
#include "rushlight/ops/pow.h"
#include "rushlight/ops/sub.h"

namespace rushlight::composites {

Tensor rsub(const Tensor& input, const TensorOrScalar& other, Scalar alpha) {
    return ops::sub(other, input, alpha);
}

namespace {
enum class Rounding { None, Trunc, Floor };
Rounding rounding_of(std::optional<std::string_view> mode) {
    if (!mode) return Rounding::None;
    if (*mode == "trunc") return Rounding::Trunc;
    RL_CHECK(*mode == "floor", throw_runtime,
             "div(rounding_mode): must be None, 'trunc' or 'floor', got '%.*s'", int(mode->size()),
             mode->data());
    return Rounding::Floor;
}
}  // namespace

Tensor div_rounded(const TensorOrScalar& input, const TensorOrScalar& other,
                   std::optional<std::string_view> rounding_mode) {
    switch (rounding_of(rounding_mode)) {
        case Rounding::None: return ops::div(input, other);
        case Rounding::Trunc: return ops::_div_trunc(input, other);
        default: return ops::floor_divide(input, other);
    }
}
Tensor div_rounded_(const Tensor& input, const TensorOrScalar& other,
                    std::optional<std::string_view> rounding_mode) {
    switch (rounding_of(rounding_mode)) {
        case Rounding::None: return ops::div_(input, other);
        case Rounding::Trunc: return ops::_div_trunc_(input, other);
        default: return ops::floor_divide_(input, other);
    }
}

Tensor positive(const Tensor& input) {
    RL_CHECK(input.dtype() != DType::Bool, throw_runtime, "positive(input): not defined for bool tensors");
    return input;
}

Tensor clamp(const Tensor& input, const std::optional<TensorOrScalar>& min,
             const std::optional<TensorOrScalar>& max) {
    if (min && max) return ops::_clamp(input, *min, *max);
    RL_CHECK(min || max, throw_runtime, "clamp(min, max): at least one bound must be given");
    return min ? ops::clamp_min(input, *min) : ops::clamp_max(input, *max);
}

Tensor clamp_(const Tensor& input, const std::optional<TensorOrScalar>& min,
              const std::optional<TensorOrScalar>& max) {
    if (min && max) return ops::_clamp_(input, *min, *max);
    RL_CHECK(min || max, throw_runtime, "clamp_(min, max): at least one bound must be given");
    return min ? ops::clamp_min_(input, *min) : ops::clamp_max_(input, *max);
}

namespace {
// An operand converted to float64, or to complex128 if it is complex. `operand` refers to the member `tensor`.
struct AsDouble {
    Tensor tensor;
    TensorOrScalar operand;
    explicit AsDouble(const TensorOrScalar& v)
        : tensor(!v.is_tensor()                  ? Tensor()
                 : v.tensor().dtype() == wide(v) ? v.tensor()
                                                 : ops::_to_copy(v.tensor(), wide(v))),
          operand(v.is_tensor()             ? TensorOrScalar(tensor)
                  : v.scalar().is_complex() ? v
                                            : TensorOrScalar(Scalar(v.scalar().to<double>()))) {}
    static DType wide(const TensorOrScalar& v) {
        return is_complex(v.tensor().dtype()) ? DType::Complex128 : DType::Float64;
    }
};
}  // namespace

Tensor float_power(const TensorOrScalar& input, const TensorOrScalar& exponent) {
    return ops::pow(AsDouble(input).operand, AsDouble(exponent).operand);
}
Tensor float_power_(const Tensor& input, const TensorOrScalar& exponent) {
    RL_CHECK(input.dtype() == DType::Float64 || input.dtype() == DType::Complex128, throw_runtime,
             "float_power_(input): needs a float64 tensor, got %s\n"
             "hint: use float_power(), which returns a new tensor",
             name(input.dtype()));
    return ops::pow_(input, AsDouble(exponent).operand);
}

}  // namespace rushlight::composites
