// Broadcasting of shapes.
#pragma once

#include <vector>

#include "rushlight/tensor.h"

namespace rushlight {

/// Returns the broadcast shape. If the shapes do not broadcast, raises a RuntimeError that names the operator and both
/// shapes.
std::vector<int64_t> broadcast_shapes(const char* op, const char* first_name, IntList first,
                                      const char* second_name, IntList second);

}  // namespace rushlight
