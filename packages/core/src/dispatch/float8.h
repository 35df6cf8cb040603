// The stage of dispatch through which operators on float8 tensors go.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Computes with float32 numbers where the operator's entry allows it, else raises NotImplementedError.
void compute_float8(const Operator& op, StageMask rest, Stack& stack);

}  // namespace rushlight
