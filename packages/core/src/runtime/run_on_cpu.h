// The CPU's kernels, called by others than an operator: devices that borrow them.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Calls the CPU's kernel of an operator over memory of the host, after the one that it has before, if any: what that leaves in
/// the context the second may need.
void run_on_cpu(KernelFn before, KernelFn kernel, const KernelArgs& args, PhiloxKey random);

}  // namespace rushlight
