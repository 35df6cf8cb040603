// Functions that captures and runs of control flow share.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::graph {

/// The truth of a tensor of one element. RuntimeError where a tracer watches, or where the tensor has no values.
bool is_true(const char* op, const Tensor& t);

}  // namespace rushlight::graph
