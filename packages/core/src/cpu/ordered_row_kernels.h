// A table of kernels for contiguous rows of elements that have an order. The kernels compare unsigned integer keys
// that increase with the elements. Equal elements keep their order, and NaN is the largest element.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"

namespace rushlight::cpu {

template <class Loop>
struct OrderedRowKernels {
    // Returns the bytes of scratch memory that a thread needs for rows of `n` elements.
    int64_t (*memory)(int64_t n, DType dtype);
    Loop loop[kNumDTypes];  // null if the dtype has no order
};

}  // namespace rushlight::cpu
