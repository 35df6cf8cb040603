// The memory layout of tangents.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::autograd {

/// Returns a tangent with the layout of `t`, so that a view of `t` is also possible for the tangent. If the layouts
/// differ, the tangent is copied. If elements of `t` share memory, the copy is contiguous.
Tensor laid_out_like(const Tensor& t, const Tensor& tangent);
/// Returns a copy of a tangent, with the layout of `t`.
Tensor copy_laid_out_like(const Tensor& t, const Tensor& tangent);

}  // namespace rushlight::autograd
