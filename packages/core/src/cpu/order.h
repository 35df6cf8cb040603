// Sorting, flipping and repeating of elements.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Sorts along `dim` in ascending or descending order. Equal elements keep their order, and NaN is the largest
/// element.
void sort(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
          bool descending, bool stable);
/// Computes the first `k` elements of the sorted order along `dim`.
void topk(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t k,
          int64_t dim, bool largest, bool sorted);

void flip(KernelContext& ctx, const View& out, const View& input, Ints dims);

/// repeat_index writes the indices 0 .. size-1 in order, and writes index r repeats[r] times. If `repeats` has a single
/// element, every index is written that number of times. repeat_index_count returns the number of elements that are
/// written.
int64_t repeat_index_count(KernelContext& ctx, const View& repeats, int64_t size);
void repeat_index(KernelContext& ctx, const View& out, const View& repeats, int64_t size);

}  // namespace rushlight::cpu
