// Scans: running sums, products and extremes along one dimension. Sums and products are kept in double precision or 64 bits and
// rounded once for each element; they do not depend on the number of threads.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// In the dtype of `out`, to which the input is converted first.
void cumsum(KernelContext& ctx, const View& out, const View& input, int64_t dim);
void cumprod(KernelContext& ctx, const View& out, const View& input, int64_t dim);

/// Of equal elements the last one is taken, and a NaN is kept.
void cummax(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim);
void cummin(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim);

void logcumsumexp(KernelContext& ctx, const View& out, const View& input, int64_t dim);

/// y[i] = terms[i] + factors[i] * y[i - 1]; with `reverse` y[i] = terms[i] + factors[i + 1] * y[i + 1].
void recurrence(KernelContext& ctx, const View& out, const View& factors, const View& terms, int64_t dim,
                bool reverse);

}  // namespace rushlight::cpu
