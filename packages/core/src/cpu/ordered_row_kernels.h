// The table of loops over dense rows of elements that have an order, by keys that rise with them. Equal elements keep their
// order; NaN is largest.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"

namespace rushlight::cpu {

template <class Loop>
struct OrderedRowKernels {
    // The bytes of scratch memory that rows of `n` elements need.
    int64_t (*memory)(int64_t n, DType dtype);
    Loop loop[kNumDTypes];  // null where there is no order
};

}  // namespace rushlight::cpu
