// Triangular parts of matrices.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Copies each matrix of a batch, and replaces the elements above (tril) or below (triu) the diagonal `diagonal` by
/// zeros.
void tril(KernelContext& ctx, const View& out, const View& input, int64_t diagonal);
void triu(KernelContext& ctx, const View& out, const View& input, int64_t diagonal);

/// Writes the row indices and the column indices of a triangle's elements to out (2, n). The elements are listed row by
/// row.
void tril_indices(KernelContext& ctx, const View& out, int64_t rows, int64_t columns, int64_t offset);
void triu_indices(KernelContext& ctx, const View& out, int64_t rows, int64_t columns, int64_t offset);

}  // namespace rushlight::cpu
