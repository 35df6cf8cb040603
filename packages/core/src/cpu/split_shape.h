// A row-major array taken apart at one dimension.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The sizes before a dimension, of it, and after it.
struct SplitShape {
    int64_t outer, size, inner;
};

/// The shape of `v` around `dim`, which may be negative; a view without dimensions is one row of one element.
inline SplitShape split_at(const View& v, int64_t dim) {
    SplitShape s{1, 1, 1};
    if (v.ndim == 0) return s;
    if (dim < 0) dim += v.ndim;
    for (int64_t d = 0; d < v.ndim; ++d) (d < dim ? s.outer : d == dim ? s.size : s.inner) *= v.sizes[d];
    return s;
}

}  // namespace rushlight::cpu
