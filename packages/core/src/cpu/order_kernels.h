// Kernels of sort and topk (order.h).
#pragma once

#include "cpu/capability.h"
#include "cpu/ordered_row_kernels.h"

namespace rushlight::cpu {

// Writes the first `k` elements in order, and their positions, of each of `rows` contiguous rows of `n` elements.
using First = void (*)(void* values, int64_t* indices, const void* in, int64_t rows, int64_t n, int64_t k,
                       bool descending, void* memory);
using OrderKernels = OrderedRowKernels<First>;

RUSHLIGHT_KERNEL_TABLE(OrderKernels, order_kernels)

}  // namespace rushlight::cpu
