// Calls of reductions.
#pragma once

#include "cuda/loops.h"
#include "rushlight/backend.h"

namespace rushlight::cuda {

struct Reducer {
    const char* name;
    const ReduceTable* loops;
    uint8_t num_params;
};

/// Runs the kernel of an operator, as core calls it.
BackendStatus run_reduce(const Reducer& op, const KernelArgs& args);

}  // namespace rushlight::cuda
