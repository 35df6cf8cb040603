#include "bodies/activation.h"
#include "rushlight/ops/_gelu.h"
#include "rushlight/ops/_gelu_tanh.h"
#include "rushlight/ops/elu.h"
#include "rushlight/ops/hardtanh.h"

namespace rushlight::composites {

Tensor gelu(const Tensor& input, std::string_view approximate) {
    if (approximate == "none") return ops::_gelu(input);
    RL_CHECK(approximate == "tanh", throw_runtime, "gelu(approximate): must be 'none' or 'tanh', got '%.*s'",
             int(approximate.size()), approximate.data());
    return ops::_gelu_tanh(input);
}

Tensor selu(const Tensor& input) {
    return ops::elu(input, Scalar(1.6732632423543772), Scalar(1.0507009873554805), 1);
}

Tensor celu(const Tensor& input, Scalar alpha) {
    double a = alpha.to<double>();
    RL_CHECK(a != 0, throw_runtime, "celu(alpha): must not be zero");
    return ops::elu(input, alpha, Scalar(1), Scalar(1 / a));
}

Tensor relu6(const Tensor& input) { return ops::hardtanh(input, Scalar(0), Scalar(6)); }

}  // namespace rushlight::composites
