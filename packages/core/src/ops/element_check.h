// Checks of the elements of tensors, which devices make asynchronously.
#pragma once

#include "dispatch/shared_kernel.h"
#include "rushlight/backend.h"
#include "rushlight/tensor.h"

namespace rushlight {

/// Raises RuntimeError if an element of `t` is not as required. The text begins with `op(argument)` and names the element;
/// it ends with `hint`, if there is one. All elements of a batched tensor are checked. A device raises the error when the host next waits for it. Elements of meta
/// tensors, and elements on devices without the kernel, are not checked. bools and complex numbers are checked for
/// NotZero only.
void check_elements(const char* op, const char* argument, const Tensor& t, Required required,
                    const char* hint = "");

/// See Backend::kernel.
extern SharedKernel check_kernel;

}  // namespace rushlight
