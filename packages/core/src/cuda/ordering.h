// Rows of elements in order, which kernels that sort or choose are made of.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// The numbers of the elements of `lines` rows of `n`, row-major, in the order of the elements of each row: zeros are equal, NaN is
/// largest, and equal elements keep their order, also where the order is turned round. In scratch memory.
int64_t* queue_order(KernelContext* context, const void* rows, DType dtype, int64_t lines, int64_t n,
                     bool descending);

}  // namespace rushlight::cuda
