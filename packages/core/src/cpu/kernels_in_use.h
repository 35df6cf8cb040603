// The kernels in use on the CPU: queries and switches.
#pragma once

#include "rushlight/export.h"

namespace rushlight::cpu {

/// "avx2" or "avx512": which of the compiled kernels run. Raises RuntimeError where RUSHLIGHT_CPU_CAPABILITY cannot be had.
RL_API const char* capability_in_use();

/// Whether convolutions can be computed by oneDNN: it was bundled and loads, and RUSHLIGHT_COMPUTE is not "plain".
RL_API bool has_onednn();

/// Whether they are where it has a kernel for them; on at first, and of no effect without oneDNN.
RL_API void use_onednn(bool on);
bool onednn_in_use();

/// Whether convolutions with 3x3 filters may be computed by minimal filtering (Winograd), which rounds a little more; on at
/// first.
RL_API bool winograd();
RL_API void use_winograd(bool on);

}  // namespace rushlight::cpu
