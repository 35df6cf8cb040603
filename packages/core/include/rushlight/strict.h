// Strict mode: operands of different shapes or dtypes raise, instead of being broadcast or promoted.
#pragma once

#include "rushlight/error.h"

namespace rushlight {

/// Turns it on or off for the running thread; what it was before.
///
/// Where it is on, an operator that broadcasts raises a RuntimeError for tensors of different numbers of dimensions (0-d
/// ones aside), and for a tensor whose dtype the joint one does not hold exactly. Numbers go with everything.
RL_API bool set_strict(bool on);
RL_API bool is_strict();

}  // namespace rushlight
