#include <limits>

#include "bodies/normalization.h"
#include "rushlight/ops/_rms_norm.h"

namespace rushlight::composites {
namespace {

// That of the dtype in which the squares are added up: float32 for half precision too.
double epsilon(DType t) {
    return t == DType::Float64 ? std::numeric_limits<double>::epsilon()
                               : double{std::numeric_limits<float>::epsilon()};
}

}  // namespace

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
    return ops::_rms_norm(input, normalized_shape, weight, eps.value_or(epsilon(input.dtype())));
}

}  // namespace rushlight::composites
