// Strict mode: operators raise an error for operands of different shapes or dtypes, instead of broadcasting or
// promoting them.
#pragma once

#include "rushlight/error.h"

namespace rushlight {

/// Turns strict mode on or off for the running thread. Returns the former value.
///
/// In strict mode an operator that broadcasts raises RuntimeError if two tensors have different numbers of dimensions,
/// except for 0-d tensors, and if the promoted dtype cannot hold all values of a tensor's dtype exactly. Python numbers
/// are accepted with any tensor.
RL_API bool set_strict(bool on);
RL_API bool is_strict();

}  // namespace rushlight
