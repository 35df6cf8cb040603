// Sorted order of rows, for kernels that sort or select.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// Returns, in scratch memory, the positions of the elements of `rows` row-major rows of `n`, sorted by the elements of each
/// row. Zeros are equal, NaN is the largest value, and equal elements keep their order, also in descending order.
int64_t* queue_order(KernelContext* context, const void* elements, DType dtype, int64_t rows, int64_t n,
                     bool descending);

}  // namespace rushlight::cuda
