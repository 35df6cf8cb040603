// Tensors as text.
#pragma once

#include <iosfwd>

#include "rushlight/tensor.h"

namespace rushlight {

/// Writes a tensor as Python's repr does with its default options: `tensor([1., 2.])`. The result of a recorded
/// operator is marked `requires_grad=True` instead of `grad_fn=...`, because core has no names of nodes. Raises
/// RuntimeError for a sparse tensor.
RL_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace rushlight
