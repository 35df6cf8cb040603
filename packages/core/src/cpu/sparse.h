// Products of sparse matrices with dense ones.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// out (rows, width): the sums of values[k] * dense[col[k]] for each row[k], in the order of k. IndexError where a number is
/// out of range.
void sparse_mm(KernelContext& ctx, const View& out, const View& row, const View& col, const View& values,
               const View& dense, int64_t rows);

/// out (nnz): the inner products of a[row[k]] and b[col[k]]. IndexError where a number is out of range.
void sampled_products(KernelContext& ctx, const View& out, const View& row, const View& col, const View& a,
                      const View& b);

}  // namespace rushlight::cpu
