// narrow() with a tensor as start.
#include "bodies/slicing.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/narrow.h"

namespace rushlight::composites {

Tensor narrow_start(const Tensor& input, int64_t dim, const Tensor& start, int64_t length) {
    RL_CHECK(
        start.dim() == 0 && is_integral(start.dtype()) && start.dtype() != DType::Bool, throw_runtime,
        "narrow(start): needs an integer, or an integer tensor without dimensions, got shape %s and dtype %s",
        to_string(start.sizes()).c_str(), name(start.dtype()));
    require_values("narrow(start)", start);
    const Tensor first = ops::_to_copy(start, DType::Int64, Device{});
    return ops::narrow(input, dim, *first.data<int64_t>(), length);
}

}  // namespace rushlight::composites
