// Products of matrices without a library.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// Queues out = alpha a b + beta added, for integers and complex numbers. Matrices have two or three dimensions, of any
/// strides; `out` is row-major. `added` broadcasts, or is null.
void queue_plain_product(const KernelArgs& args, const View& out, const View& a, const View& b,
                         bool b_transposed, const View* added, const Param& beta, const Param& alpha);

}  // namespace rushlight::cuda
