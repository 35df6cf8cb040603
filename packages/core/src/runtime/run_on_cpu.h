// The CPU's kernels, called by others than an operator: devices that borrow them.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Calls the CPU's kernel of an operator over memory of the host, after the operator's checking kernel, if it has one.
/// The second kernel may need data that the first leaves in the context.
void run_on_cpu(KernelFn before, KernelFn kernel, const KernelArgs& args, PhiloxKey random);

}  // namespace rushlight
