// Distances between rows, computed from the differences of their elements and not from a matrix product.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes the p-norms of the differences between the rows of a (B, P, M) and the rows of b (B, R, M). `out` is (B, P,
/// R).
void cdist_rows(KernelContext& ctx, const View& out, const View& a, const View& b, double p);
/// Computes the gradient with respect to `a` from the `distances` and their gradient `grad`. `out` is (B, P, M).
void cdist_gradient(KernelContext& ctx, const View& out, const View& grad, const View& a, const View& b,
                    const View& distances, double p);

}  // namespace rushlight::cpu
