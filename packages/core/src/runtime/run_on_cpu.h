// Calls of the CPU's kernels by devices that use them.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Calls the CPU's kernel of an operator on host memory, after the operator's first kernel, if it has one. The second
/// kernel may need data that the first one stored in the context.
void run_on_cpu(KernelFn before, KernelFn kernel, const KernelArgs& args, PhiloxKey random);

}  // namespace rushlight
