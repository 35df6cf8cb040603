// The loops behind order.h: which elements of a line come first, by keys that rise with the elements. Equal elements keep
// their order; NaN is largest.
#pragma once

#include <cstddef>

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

struct OrderKernels {
    // Bytes of memory that lines of `n` elements need.
    int64_t (*memory)(int64_t n, DType dtype);
    // For `lines` dense lines of `n` elements each: the first `k` in order, and where they were.
    using First = void (*)(void* values, int64_t* indices, const void* in, int64_t lines, int64_t n,
                           int64_t k, bool descending, void* memory);
    First first[kNumDTypes];  // null where there is no order
};

RUSHLIGHT_KERNEL_TABLE(OrderKernels, order_kernels)

}  // namespace rushlight::cpu
