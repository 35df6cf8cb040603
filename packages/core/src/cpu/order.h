// Sorting, flipping and repeating of elements.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Sorts along `dim` in ascending or descending order. Equal elements keep their order, and NaN is the largest
/// element.
void sort(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
          bool descending, bool stable);
/// Computes the first `k` elements in this order.
void topk(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t k,
          int64_t dim, bool largest, bool sorted);

void flip(KernelContext& ctx, const View& out, const View& input, Ints dims);

/// repeat_index writes the indices 0 .. size-1 in order, index r repeats[r] times. If `repeats` has a single
/// element, it applies to every index. repeat_index_count returns the number of elements that are written.
int64_t repeat_index_count(KernelContext& ctx, const View& repeats, int64_t size);
void repeat_index(KernelContext& ctx, const View& out, const View& repeats, int64_t size);

}  // namespace rushlight::cpu
