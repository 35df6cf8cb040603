// The loops behind order.h: which elements of a line come first.
#pragma once

#include "cpu/capability.h"
#include "cpu/ordered_line_kernels.h"

namespace rushlight::cpu {

// For `lines` dense lines of `n` elements each: the first `k` in order, and where they were.
using First = void (*)(void* values, int64_t* indices, const void* in, int64_t lines, int64_t n, int64_t k,
                       bool descending, void* memory);
using OrderKernels = OrderedLineKernels<First>;

RUSHLIGHT_KERNEL_TABLE(OrderKernels, order_kernels)

}  // namespace rushlight::cpu
