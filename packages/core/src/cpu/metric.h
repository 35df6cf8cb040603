// Distances of rows, from the differences themselves.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// out (B, P, R): the p-norms of the differences of the rows of a (B, P, M) and b (B, R, M).
void cdist_rows(KernelContext& ctx, const View& out, const View& a, const View& b, double p);
/// out (B, P, M): the gradient by `a` of those `distances`, whose gradient is `grad`.
void cdist_gradient(KernelContext& ctx, const View& out, const View& grad, const View& a, const View& b,
                    const View& distances, double p);

}  // namespace rushlight::cpu
