#include "bodies/searching.h"
#include "ops/views.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/floor_divide.h"
#include "rushlight/ops/remainder.h"

namespace rushlight::composites {

std::vector<Tensor> unravel_index(const Tensor& indices, IntList shape) {
    RL_CHECK(is_integral(indices.dtype()), throw_type,
             "unravel_index(indices): must be an integer tensor, got %s", name(indices.dtype()));
    int64_t count = 1;
    for (int64_t n : shape) {
        RL_CHECK(n >= 0, throw_value, "unravel_index(shape): must not be negative, got %s",
                 to_string(shape).c_str());
        count *= n != 0;
    }
    RL_CHECK(count || indices.numel() == 0, throw_value, "unravel_index(shape): %s has no elements",
             to_string(shape).c_str());
    std::vector<Tensor> coordinates(shape.size());
    Tensor rest = indices.dtype() == DType::Int64 ? indices : ops::_to_copy(indices, DType::Int64);
    for (size_t d = shape.size(); d-- > 0;) {
        coordinates[d] = count ? ops::remainder(rest, Scalar(shape[d])) : ops::clone(rest);
        if (count && d > 0) rest = ops::floor_divide(rest, Scalar(shape[d]));
    }
    return coordinates;
}

}  // namespace rushlight::composites
