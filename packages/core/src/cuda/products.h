// Products of matrices without a library.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// Enqueues the computation out = alpha * a @ b + beta * added, for integers and complex numbers. All matrices have two
/// or three dimensions and may have any strides, except that `out` is row-major. `added` is broadcast, or is null.
void queue_plain_product(const KernelArgs& args, const View& out, const View& a, const View& b,
                         bool b_transposed, const View* added, const Param& beta, const Param& alpha);

}  // namespace rushlight::cuda
