// Calls of CPU kernels.
#pragma once

#include "rushlight/caller_locks.h"
#include "rushlight/kernel.h"

namespace rushlight {

/// Calls a kernel. If its operands are large, the caller's locks are released: Note [Locks of the caller].
inline void call_cpu_kernel(KernelFn kernel, const KernelArgs& args) {
    constexpr int64_t kMany = 1 << 15;  // computing this number of elements takes 10 microseconds or more
    int64_t elements = 0;
    for (int i = 0; i < args.num_outputs + args.num_inputs; ++i) elements += args.tensors[i].numel;
    const WithoutCallerLocks others_run(WithoutCallerLocks::While::Computing, elements >= kMany);
    kernel(args);
}

}  // namespace rushlight
