// The dtype of a result that is computed from several operands.
#pragma once

#include <span>

#include "rushlight/tensor.h"

namespace rushlight {

/// The dtype of an expression of tensors and numbers. Tensors with dimensions take precedence over 0-d tensors, and 0-d
/// tensors take precedence over numbers, unless an operand of lower precedence has a higher category (the rule of
/// PyTorch and of the array API standard).
RL_API DType result_dtype(std::span<const TensorOrScalar> operands);

}  // namespace rushlight
