// Functions that are used both by captures and by runs of control flow.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::graph {

/// Returns the truth value of a tensor of one element. Raises RuntimeError during a capture, or if the tensor is on
/// the device "meta".
bool is_true(const char* op, const Tensor& t);

}  // namespace rushlight::graph
