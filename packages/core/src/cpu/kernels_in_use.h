// Queries and switches for the kernels in use on the CPU.
#pragma once

#include "rushlight/export.h"

namespace rushlight::cpu {

/// Returns the compiled copy of the kernels that is in use: "avx2" or "avx512". Raises RuntimeError if the copy
/// that RUSHLIGHT_CPU_CAPABILITY selects is not available.
RL_API const char* capability_in_use();

/// Whether convolutions can be computed by oneDNN. This is true if the library is bundled and can be loaded, and
/// RUSHLIGHT_COMPUTE is not "plain".
RL_API bool has_onednn();

/// Sets whether oneDNN computes the convolutions for which it has kernels. This is enabled by default, and has no
/// effect if oneDNN is not available.
RL_API void use_onednn(bool on);
bool onednn_in_use();

/// Whether convolutions with 3x3 filters may be computed by minimal filtering (Winograd), which has slightly larger
/// rounding errors. This is enabled by default.
RL_API bool winograd();
RL_API void use_winograd(bool on);

}  // namespace rushlight::cpu
