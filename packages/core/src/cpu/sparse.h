// Products of sparse and dense matrices.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes the product of a sparse matrix and `dense`. Row r of out (rows, width) is the sum of values[k] *
/// dense[col[k]] over all k with row[k] = r, in the order of k. Raises IndexError if an index is out of range.
void sparse_mm(KernelContext& ctx, const View& out, const View& row, const View& col, const View& values,
               const View& dense, int64_t rows);

/// Sets out[k] to the inner product of the rows a[row[k]] and b[col[k]], for every k. Raises IndexError if an index is
/// out of range.
void sampled_products(KernelContext& ctx, const View& out, const View& row, const View& col, const View& a,
                      const View& b);

}  // namespace rushlight::cpu
