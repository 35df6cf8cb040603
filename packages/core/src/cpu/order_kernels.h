// The loops behind order.h: which elements of a row come first.
#pragma once

#include "cpu/capability.h"
#include "cpu/ordered_row_kernels.h"

namespace rushlight::cpu {

// For `rows` dense rows of `n` elements each: the first `k` in order, and where they were.
using First = void (*)(void* values, int64_t* indices, const void* in, int64_t rows, int64_t n, int64_t k,
                       bool descending, void* memory);
using OrderKernels = OrderedRowKernels<First>;

RUSHLIGHT_KERNEL_TABLE(OrderKernels, order_kernels)

}  // namespace rushlight::cpu
