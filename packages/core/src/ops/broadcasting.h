// Shapes joined by broadcasting.
#pragma once

#include <vector>

#include "rushlight/tensor.h"

namespace rushlight {

/// The broadcast shape. Raises RuntimeError, which names the operator and both shapes, if they do not broadcast.
std::vector<int64_t> broadcast_shapes(const char* op, const char* first_name, IntList first,
                                      const char* second_name, IntList second);

}  // namespace rushlight
