// Reorder the elements of a row: sort and flip.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// In rising or falling order along `dim`; equal elements keep their order, NaN is largest.
void sort(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
          bool descending, bool stable);
/// The first `k` of them.
void topk(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t k,
          int64_t dim, bool largest, bool sorted);

void flip(KernelContext& ctx, const View& out, const View& input, Ints dims);

/// Element i is the number of the row that comes i-th if row r comes repeats[r] times; a single number counts for all `size`.
/// The count is how many that makes.
int64_t repeat_index_count(KernelContext& ctx, const View& repeats, int64_t size);
void repeat_index(KernelContext& ctx, const View& out, const View& repeats, int64_t size);

}  // namespace rushlight::cpu
