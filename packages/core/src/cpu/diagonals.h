// Triangles of matrices.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Writes zeros above or below the diagonal `diagonal` of each matrix of a batch.
void tril(KernelContext& ctx, const View& out, const View& input, int64_t diagonal);
void triu(KernelContext& ctx, const View& out, const View& input, int64_t diagonal);

/// out (2, n): rows and columns of the elements of a triangle, row by row.
void tril_indices(KernelContext& ctx, const View& out, int64_t rows, int64_t columns, int64_t offset);
void triu_indices(KernelContext& ctx, const View& out, int64_t rows, int64_t columns, int64_t offset);

}  // namespace rushlight::cpu
