// Selects the implementations of attention that may be used.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// `fused` allows the kernel that does not store the matrix of scores, for the calls that it supports. `composed` allows
/// matrix products and a softmax. Initially both are allowed. The choice applies to the whole process. A call that no
/// allowed implementation supports raises RuntimeError.
RL_API void choose_attention(bool fused, bool composed);

}  // namespace rushlight
