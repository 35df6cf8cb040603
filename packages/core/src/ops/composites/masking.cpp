#include <algorithm>

#include "bodies/masking.h"
#include "ops/broadcasting.h"
#include "ops/fresh.h"
#include "ops/numbers.h"
#include "rushlight/ops/broadcast_to.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/full.h"
#include "rushlight/ops/index.h"
#include "rushlight/ops/masked_fill.h"
#include "rushlight/ops/masked_scatter_.h"
#include "rushlight/ops/masked_select.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/unbind.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {
namespace {

Tensor row_major_copy(const Tensor& t) { return ops::clone(t, "contiguous"); }

}  // namespace

Tensor masked_fill(const Tensor& input, const Tensor& mask, const TensorOrScalar& value) {
    RL_CHECK(mask.dtype() == DType::Bool, throw_runtime, "masked_fill(mask): must be a bool tensor, got %s",
             name(mask.dtype()));
    if (!value.is_tensor())
        return ops::where(mask, element_of("masked_fill", "value", value.scalar(), input.dtype()), input);
    RL_CHECK(value.tensor().dim() == 0, throw_runtime,
             "masked_fill(value): must be a number or a 0-d tensor, got shape %s",
             to_string(value.tensor().sizes()).c_str());
    return ops::where(mask, element_tensor("masked_fill", "value", value.tensor(), input.dtype()), input);
}

std::vector<Tensor> where_indices(const Tensor& condition) { return ops::nonzero(condition, true); }

Tensor masked_select(const Tensor& input, const Tensor& mask) {
    RL_CHECK(mask.dtype() == DType::Bool, throw_runtime, "masked_select(mask): must be a bool tensor, got %s",
             name(mask.dtype()));
    auto shape = broadcast_shapes("masked_select", "input", input.sizes(), "mask", mask.sizes());
    if (shape.empty()) shape = {1};  // the result always has one dimension
    Tensor spread = ops::broadcast_to(mask, shape);
    return ops::index(ops::broadcast_to(input, shape), {&spread, 1});
}

Tensor _masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntList sizes) {
    int64_t count = 1;
    for (int64_t n : sizes)
        RL_CHECK(n >= 0 && !__builtin_mul_overflow(count, n, &count), throw_runtime,
                 "masked_scatter_backward(sizes): %s is not a shape", to_string(sizes).c_str());
    // The number of selected elements does not affect the shape of this result, so an arbitrary number is used on the
    // meta device.
    Tensor written;
    if (grad.device().type == DeviceType::Meta) {
        written = ops::flatten(ops::masked_fill(grad, mask, Scalar(0)));
        written = ops::narrow(written, 0, 0, std::min(written.numel(), count));
    } else {
        written = ops::masked_select(grad, mask);
    }
    const int64_t rest = count - written.numel();
    if (rest > 0) {
        const Tensor parts[] = {written,
                                ops::full(IntList(&rest, 1), Scalar(0), grad.dtype(), grad.device())};
        written = ops::cat(parts, 0);
    }
    return ops::reshape(written, sizes);
}
Tensor masked_scatter(const Tensor& input, const Tensor& mask, const Tensor& source) {
    auto shape = broadcast_shapes("masked_scatter", "input", input.sizes(), "mask", mask.sizes());
    return fresh(ops::masked_scatter_(row_major_copy(ops::broadcast_to(input, shape)), mask, source));
}

std::vector<Tensor> nonzero_as_tuple(const Tensor& input, bool as_tuple) {
    RL_CHECK(as_tuple, throw_value,
             "nonzero(as_tuple): must be True or left out, got False\n"
             "hint: leave out as_tuple to get one tensor of indices");
    return ops::unbind(ops::nonzero(input.dim() ? input : ops::unsqueeze(input, 0)), 1);
}

Tensor argwhere(const Tensor& input) { return ops::nonzero(input); }

}  // namespace rushlight::composites
