// Which of the two ways of computing attention may be taken.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// `fused`: the kernel that keeps no matrix of scores, where it can compute a call. `composed`: matrix products and a softmax.
/// Both may be taken at first, in the whole process; a call for which neither is left raises RuntimeError.
RL_API void choose_attention(bool fused, bool composed);

}  // namespace rushlight
