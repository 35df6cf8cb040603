// Selects the implementations of attention that may be used.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// Sets which implementations of attention are allowed in this process. `fused` stands for the kernel that does not
/// store the matrix of scores and supports only some calls. `composed` stands for the computation with matrix products
/// and a softmax. Initially both are allowed. A call that no allowed implementation supports raises RuntimeError.
RL_API void choose_attention(bool fused, bool composed);

}  // namespace rushlight
