// Elements by rank, and counts of elements by value.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Along `dim`, whose results have one element there or none; NaN is largest. Of equal elements the one that a stable sort puts
/// at the rank; of the most frequent value the last.
void kthvalue(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t k,
              int64_t dim, bool keepdim);
void median_dim(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
                bool keepdim);
void nanmedian_dim(KernelContext& ctx, const View& values, const View& indices, const View& input,
                   int64_t dim, bool keepdim);
void mode(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
          bool keepdim);

/// Of all elements; NaN where there are none.
void median(KernelContext& ctx, const View& out, const View& input);
void nanmedian(KernelContext& ctx, const View& out, const View& input);

/// How many elements lie in each of `bins` equal parts of [min, max]: where both are equal, of the elements' range. RuntimeError
/// where the range is not finite.
void histc(KernelContext& ctx, const View& out, const View& input, int64_t bins, double min, double max);
/// The number of elements, or the sum of `weight`, between neighbouring `edges`.
void histogram(KernelContext& ctx, const View& out, const View& input, const View& edges, const View& weight,
               bool density);

/// Counts how often each number from 0 on occurs, or sums the weights. Raises RuntimeError for negative numbers.
int64_t bincount_count(KernelContext& ctx, const View& input, const View& weights, int64_t minlength);
void bincount(KernelContext& ctx, const View& out, const View& input, const View& weights, int64_t minlength);

}  // namespace rushlight::cpu
