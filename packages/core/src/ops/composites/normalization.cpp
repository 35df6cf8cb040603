#include <limits>
#include <vector>

#include "bodies/normalization.h"
#include "rushlight/ops/_rms_norm.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/rsqrt.h"

namespace rushlight::composites {
namespace {

// That of the dtype in which the squares are added up: float32 for half precision too.
double epsilon(DType t) {
    return t == DType::Float64 ? std::numeric_limits<double>::epsilon()
                               : double{std::numeric_limits<float>::epsilon()};
}

}  // namespace

namespace {

// The mean of the squares themselves, not of the squares of absolute values: PyTorch's definition.
Tensor complex_rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, double eps) {
    const int64_t count = static_cast<int64_t>(normalized_shape.size());
    bool fits = count > 0 && count <= input.dim();
    std::vector<int64_t> dims;
    for (int64_t d = -count; fits && d < 0; ++d) {
        fits = input.size(d) == normalized_shape[static_cast<size_t>(d + count)];
        dims.push_back(d);
    }
    RL_CHECK(fits, throw_runtime, "rms_norm(normalized_shape): got %s for a tensor of shape %s",
             to_string(normalized_shape).c_str(), to_string(input.sizes()).c_str());
    const Tensor mean = ops::mean(ops::mul(input, input), dims, true, std::nullopt);
    const Tensor normal = ops::mul(input, ops::rsqrt(ops::add(mean, Scalar(eps))));
    return weight.defined() ? ops::mul(normal, weight) : normal;
}

}  // namespace

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
    if (is_complex(input.dtype()))
        return complex_rms_norm(input, normalized_shape, weight,
                                eps.value_or(epsilon(real_dtype(input.dtype()))));
    return ops::_rms_norm(input, normalized_shape, weight, eps.value_or(epsilon(input.dtype())));
}

}  // namespace rushlight::composites
