// The dtype of a result that is computed from several operands.
#pragma once

#include <span>

#include "rushlight/tensor.h"

namespace rushlight {

/// The dtype of an expression over tensors and numbers: tensors with dimensions come before 0-d tensors, and those
/// before numbers, unless the later has a higher category (the rule of PyTorch and of the array API standard).
RL_API DType result_dtype(std::span<const TensorOrScalar> operands);

}  // namespace rushlight
