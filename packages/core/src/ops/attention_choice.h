// Which of the two implementations of attention may be used.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// `fused`: the kernel that keeps no matrix of scores, where it can compute a call. `composed`: matrix products and a softmax.
/// Initially both may be used; the choice holds for the whole process. A call for which neither remains raises
/// RuntimeError.
RL_API void choose_attention(bool fused, bool composed);

}  // namespace rushlight
