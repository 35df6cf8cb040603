// Rows of elements in order, which kernels that sort or choose are made of.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// The positions of the elements of `rows` rows of `n`, row-major, sorted by the elements of each row: zeros are equal, NaN is
/// largest, and equal elements keep their order, in descending order too. In scratch memory.
int64_t* queue_order(KernelContext* context, const void* elements, DType dtype, int64_t rows, int64_t n,
                     bool descending);

}  // namespace rushlight::cuda
