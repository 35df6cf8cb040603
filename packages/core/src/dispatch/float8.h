// The dispatch stage of calls with float8 tensors.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Calls the operator with float8 operands converted to float32, if the operator's entry allows float8. Raises
/// NotImplementedError otherwise.
void compute_float8(const Operator& op, StageMask rest, Stack& stack);

}  // namespace rushlight
