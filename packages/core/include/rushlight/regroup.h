// Whether a tensor can be viewed as a tensor of larger or smaller elements.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// Whether `t` can be viewed as a tensor whose elements are `count` times as large. `t` must have at least one
/// dimension. The elements of the last dimension must be adjacent in memory, and the offset and the strides of the
/// other dimensions must be multiples of `count`. The last size must be a multiple of `count`, too, but this is not
/// checked. Pass 1 as `count` if the elements of the view are not larger than those of `t`.
inline bool can_regroup(const Tensor& t, int64_t count) {
    const size_t last = static_cast<size_t>(t.dim()) - 1;
    bool fits = (t.strides()[last] == 1 || t.sizes()[last] == 1) && t.impl()->offset() % count == 0;
    for (size_t d = 0; d < last; ++d) fits &= t.sizes()[d] <= 1 || t.strides()[d] % count == 0;
    return fits;
}

}  // namespace rushlight
