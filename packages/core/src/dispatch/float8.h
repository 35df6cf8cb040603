// The dispatch stage of calls with float8 tensors.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Computes in float32 if the operator's entry declares float8. Raises NotImplementedError otherwise.
void compute_float8(const Operator& op, StageMask rest, Stack& stack);

}  // namespace rushlight
