#include <limits>

#include "bodies/normalization.h"
#include "rushlight/ops/_rms_norm.h"

namespace rushlight::composites {
namespace {

double epsilon(DType t) {
    switch (t) {
        case DType::Float64: return std::numeric_limits<double>::epsilon();
        case DType::Float16: return 0x1p-10;
        case DType::BFloat16: return 0x1p-7;
        default: return std::numeric_limits<float>::epsilon();
    }
}

}  // namespace

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
    return ops::_rms_norm(input, normalized_shape, weight, eps.value_or(epsilon(input.dtype())));
}

}  // namespace rushlight::composites
