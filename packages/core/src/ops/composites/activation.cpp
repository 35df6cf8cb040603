#include "bodies/activation.h"

#include "ops/rules.h"
#include "rushlight/ops/_gelu.h"
#include "rushlight/ops/_gelu_tanh.h"
#include "rushlight/ops/_prelu.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/elu.h"
#include "rushlight/ops/empty.h"
#include "rushlight/ops/empty_like.h"
#include "rushlight/ops/gt.h"
#include "rushlight/ops/hardtanh.h"
#include "rushlight/ops/le.h"
#include "rushlight/ops/leaky_relu.h"
#include "rushlight/ops/masked_scatter.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/sgn.h"
#include "rushlight/ops/sigmoid.h"
#include "rushlight/ops/square.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/uniform_.h"
#include "rushlight/ops/where.h"
#include "rushlight/random.h"

namespace rushlight::composites {

Tensor gelu(const Tensor& input, std::string_view approximate) {
    if (approximate == "none") return ops::_gelu(input);
    RL_CHECK(approximate == "tanh", throw_runtime, "gelu(approximate): must be 'none' or 'tanh', got '%.*s'",
             int(approximate.size()), approximate.data());
    return ops::_gelu_tanh(input);
}

namespace {

Tensor softsign_size(const Tensor& input) { return ops::add(ops::abs(input), Scalar(1)); }

}  // namespace

// The derivative of z / (1 + |z|). For complex z, a change of z changes |z| by its component in the direction of z.
Tensor softsign_backward(const Tensor& grad, const Tensor& input) {
    const Tensor size = softsign_size(input);
    if (!is_complex(input.dtype())) return ops::div(grad, ops::square(size));
    const Tensor along = ops::div(ops::real(ops::mul(ops::conj(grad), input)), ops::square(size));
    return ops::sub(ops::div(grad, size), ops::mul(ops::sgn(input), along));
}
Tensor softsign_forward(const Tensor& tangent, const Tensor& input) {
    const Tensor size = softsign_size(input);
    if (!is_complex(input.dtype())) return ops::div(tangent, ops::square(size));
    const Tensor along =
        ops::div(ops::real(ops::mul(ops::conj(ops::sgn(input)), tangent)), ops::square(size));
    return ops::sub(ops::div(tangent, size), ops::mul(input, along));
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
Tensor relu6_(const Tensor& input) { return ops::hardtanh_(input, Scalar(0), Scalar(6)); }

Tensor prelu(const Tensor& input, const Tensor& weight) {
    rules::same_dtype("prelu", "input", input, "weight", weight);
    RL_CHECK(weight.dim() <= 1, throw_runtime,
             "prelu(weight): needs one number, or one number for each channel, got shape %s",
             to_string(weight.sizes()).c_str());
    if (weight.numel() == 1) return ops::_prelu(input, ops::reshape(weight, IntList()));
    int64_t channels = input.dim() > 1 ? input.size(1) : 1;
    RL_CHECK(
        weight.numel() == channels && input.dim() > 0, throw_runtime,
        "prelu(weight): must have one number, or one for each of the %lld channels of an input of shape %s, got %lld",
        (long long)channels, to_string(input.sizes()).c_str(), (long long)weight.numel());
    // The weight has one element for each channel and broadcasts over the dimensions after the channels.
    std::vector<int64_t> shape(static_cast<size_t>(std::max<int64_t>(input.dim() - 1, 1)), 1);
    shape[0] = channels;
    return ops::_prelu(input, ops::reshape(weight, shape));
}

namespace {

// Computes as PyTorch does on the CPU: draws float64 slopes for the elements that are not positive, in row-major order,
// and multiplies in float32, or in float64 for a float64 input.
Tensor product_of_pytorch(const Tensor& input, double low, double high, Generator* generator) {
    const DType dtype = input.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
    if (dtype == DType::Float32) {
        low = static_cast<float>(low);
        high = static_cast<float>(high);
    }
    const Tensor values = ops::detach(input), drawn_for = ops::le(values, 0);
    const int64_t count = ops::nonzero(drawn_for).size(0);
    const Tensor share = ops::uniform_(ops::empty({count}, DType::Float64, input.device()), 0, 1, generator);
    const Tensor slopes = ops::add(ops::mul(share, Scalar(high - low)), Scalar(low));
    const Tensor slope =
        ops::masked_scatter(ops::ones_like(values, dtype), drawn_for, ops::to(slopes, dtype));
    return ops::to(ops::mul(ops::to(input, dtype), slope), input.dtype());
}

}  // namespace

Tensor rrelu(const Tensor& input, Scalar lower, Scalar upper, bool training, Generator* generator) {
    double low = lower.to<double>(), high = upper.to<double>();
    RL_CHECK(low <= high, throw_runtime, "rrelu(lower, upper): lower must be at most upper, got %g and %g",
             low, high);
    if (!training) return ops::leaky_relu(input, Scalar((low + high) / 2));
    const Generator& drawn = generator ? *generator : default_generator();
    const bool as_pytorch = drawn.stream() == RandomStream::Torch && input.device() == Device();
    const Tensor product =
        as_pytorch
            ? product_of_pytorch(input, low, high, generator)
            : ops::mul(input, ops::uniform_(ops::empty_like(ops::detach(input)), low, high, generator));
    return ops::where(ops::gt(input, 0), input, product);
}

Tensor glu(const Tensor& input, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_runtime, "glu(input): must have at least 1 dimension, got a 0-d tensor");
    int64_t size = input.size(dim), half = size / 2;
    RL_CHECK(size % 2 == 0, throw_runtime, "glu(input): dimension %lld must have an even size, got %lld",
             (long long)dim, (long long)size);
    return ops::mul(ops::narrow(input, dim, 0, half), ops::sigmoid(ops::narrow(input, dim, half, half)));
}

}  // namespace rushlight::composites
