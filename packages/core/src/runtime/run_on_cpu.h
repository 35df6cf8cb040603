// Calls of the CPU's kernels by devices that use them.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Calls the CPU's kernel of an operator on host memory. If `before` is not null, first calls this kernel in the same
/// context, because the second kernel may need data that the first kernel stored there.
void run_on_cpu(KernelFn before, KernelFn kernel, const KernelArgs& args, PhiloxKey random);

}  // namespace rushlight
