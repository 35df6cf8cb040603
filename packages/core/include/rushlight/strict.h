// Strict mode: operators raise an error for operands of different shapes or dtypes, instead of broadcasting or
// promoting them.
#pragma once

#include "rushlight/error.h"

namespace rushlight {

/// Turns strict mode on or off for the running thread. Returns the former value.
///
/// In strict mode, an operator that broadcasts raises RuntimeError in two cases: if two tensors have different numbers
/// of dimensions and neither is 0-d, and if the promoted dtype cannot represent all values of a tensor's dtype exactly.
/// Python numbers are accepted with any tensor.
RL_API bool set_strict(bool on);
RL_API bool is_strict();

}  // namespace rushlight
