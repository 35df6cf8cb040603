// Sorted order of rows, for kernels that sort or select.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// Sorts `rows` row-major rows of `n` elements each. Returns, in scratch memory, the positions of the elements in
/// sorted order, row by row. The zeros 0 and -0 are equal, NaN is the largest value, and equal elements keep their
/// order, also in descending order.
int64_t* queue_order(KernelContext* context, const void* elements, DType dtype, int64_t rows, int64_t n,
                     bool descending);

}  // namespace rushlight::cuda
