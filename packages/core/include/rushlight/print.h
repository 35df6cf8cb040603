// Tensors as text.
#pragma once

#include <iosfwd>

#include "rushlight/tensor.h"

namespace rushlight {

/// Writes a tensor as Python's repr does with its default options: `tensor([1., 2.])`. A result of recorded operators is marked
/// `requires_grad=True`, as core has no names of nodes. RuntimeError for a sparse tensor.
RL_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace rushlight
