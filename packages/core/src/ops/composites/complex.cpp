#include <numbers>

#include "bodies/complex.h"
#include "rushlight/ops/_angle.h"
#include "rushlight/ops/_angle_of_real.h"
#include "rushlight/ops/_conj.h"
#include "rushlight/ops/_sgn.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/broadcast_tensors.h"
#include "rushlight/ops/cos.h"
#include "rushlight/ops/lt.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sign.h"
#include "rushlight/ops/sin.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/view_as_complex.h"
#include "rushlight/ops/view_as_real.h"

namespace rushlight::composites {
namespace {

void check_parts(const char* op, const char* first, const Tensor& a, const char* second, const Tensor& b) {
    RL_CHECK(a.dtype() == b.dtype() && (a.dtype() == DType::Float32 || a.dtype() == DType::Float64),
             throw_runtime, "%s(%s, %s): both must be float32 or both float64, got %s and %s", op, first,
             second, name(a.dtype()), name(b.dtype()));
}

}  // namespace

Tensor itself(const Tensor& input) { return input; }

Tensor real(const Tensor& input) {
    return is_complex(input.dtype()) ? ops::select(ops::view_as_real(input), -1, 0) : input;
}
Tensor imag(const Tensor& input) {
    RL_CHECK(is_complex(input.dtype()), throw_runtime, "imag(input): needs a complex tensor, got %s",
             name(input.dtype()));
    return ops::select(ops::view_as_real(input), -1, 1);
}

Tensor conj(const Tensor& input) { return is_complex(input.dtype()) ? ops::_conj(input) : input; }
Tensor sgn(const Tensor& input) { return is_complex(input.dtype()) ? ops::_sgn(input) : ops::sign(input); }

Tensor sgn_(const Tensor& input) { return is_complex(input.dtype()) ? ops::_sgn_(input) : ops::sign_(input); }

Tensor angle(const Tensor& input) {
    if (is_complex(input.dtype())) return ops::_angle(input);
    if (is_floating(input.dtype())) return ops::_angle_of_real(input);
    return ops::mul(ops::_to_copy(ops::lt(input, Scalar(0)), default_dtype(), std::nullopt),
                    Scalar(std::numbers::pi));
}

Tensor complex(const Tensor& real, const Tensor& imag) {
    check_parts("complex", "real", real, "imag", imag);
    const Tensor parts[] = {real, imag};
    std::vector<Tensor> same = ops::broadcast_tensors(parts);
    return ops::view_as_complex(ops::stack(same, -1));
}
Tensor polar(const Tensor& abs, const Tensor& angle) {
    check_parts("polar", "abs", abs, "angle", angle);
    return complex(ops::mul(abs, ops::cos(angle)), ops::mul(abs, ops::sin(angle)));
}

}  // namespace rushlight::composites
