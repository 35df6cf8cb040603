// Strict mode: operands of different shapes or dtypes raise, instead of being broadcast or promoted.
#pragma once

#include "rushlight/error.h"

namespace rushlight {

/// Turns strict mode on or off for the running thread. Returns the former value.
///
/// In strict mode an operator that broadcasts raises RuntimeError for tensors of different numbers of dimensions, 0-d
/// tensors excepted, and for a tensor whose values the promoted dtype does not hold exactly. Python numbers are
/// accepted with any tensor.
RL_API bool set_strict(bool on);
RL_API bool is_strict();

}  // namespace rushlight
