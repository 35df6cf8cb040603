#include "bodies/creation.h"
#include "ops/fresh.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/fill_.h"
#include "rushlight/ops/full.h"

namespace rushlight::composites {

// Fills a copy in place. So the result is part of the input's graph, and its gradient is zero.
Tensor fill(const Tensor& input, Scalar value) { return fresh(ops::fill_(ops::clone(input), value)); }
Tensor fill_tensor(const Tensor& input, const Tensor& value) {
    return fresh(ops::fill_(ops::clone(input), value));
}

Tensor scalar_tensor(Scalar s, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
    return ops::full(IntList(), s, dtype.value_or(default_dtype()), device, requires_grad);
}

}  // namespace rushlight::composites
