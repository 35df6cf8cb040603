// Scans: cumulative sums, products and extremes along one dimension. Sums and products are accumulated in double
// precision or 64-bit integers, and rounded once for each element. They do not depend on the number of threads.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The input is first converted to the dtype of `out`, and the results are computed in this dtype.
void cumsum(KernelContext& ctx, const View& out, const View& input, int64_t dim);
void cumprod(KernelContext& ctx, const View& out, const View& input, int64_t dim);

/// Of equal elements, the index of the last is written. After a NaN, all further values are NaN.
void cummax(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim);
void cummin(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim);

void logcumsumexp(KernelContext& ctx, const View& out, const View& input, int64_t dim);

/// Computes y[i] = terms[i] + factors[i] * y[i - 1] or, if `reverse` is true, y[i] = terms[i] + factors[i + 1] * y[i + 1].
void recurrence(KernelContext& ctx, const View& out, const View& factors, const View& terms, int64_t dim,
                bool reverse);

}  // namespace rushlight::cpu
