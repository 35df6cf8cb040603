// The shape of a row-major array, split at one dimension.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The product of the sizes before a dimension, the size of the dimension, and the product of the sizes after it.
struct SplitShape {
    int64_t outer, size, inner;
};

/// Splits the shape of `v` at `dim`, which may be negative. A view without dimensions has the shape (1, 1, 1).
inline SplitShape split_at(const View& v, int64_t dim) {
    SplitShape s{1, 1, 1};
    if (v.ndim == 0) return s;
    if (dim < 0) dim += v.ndim;
    for (int64_t d = 0; d < v.ndim; ++d) (d < dim ? s.outer : d == dim ? s.size : s.inner) *= v.sizes[d];
    return s;
}

}  // namespace rushlight::cpu
