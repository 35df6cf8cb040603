// Selection of elements by rank, and counts of elements by value.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The functions select one element of each row along `dim`. The results have size 1 along `dim` if `keepdim` is true,
/// and lack the dimension otherwise. NaN is the largest element. Equal elements are ranked as in a stable sort. `mode`
/// selects the last occurrence of the most frequent value.
void kthvalue(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t k,
              int64_t dim, bool keepdim);
void median_dim(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
                bool keepdim);
void nanmedian_dim(KernelContext& ctx, const View& values, const View& indices, const View& input,
                   int64_t dim, bool keepdim);
void mode(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
          bool keepdim);

/// Computes the median of all elements, or NaN if there are none.
void median(KernelContext& ctx, const View& out, const View& input);
void nanmedian(KernelContext& ctx, const View& out, const View& input);

/// Counts the elements in each of `bins` parts of equal width of the interval [min, max]. If min equals max, the
/// interval from the smallest to the largest element is used. Raises RuntimeError if the range is not finite.
void histc(KernelContext& ctx, const View& out, const View& input, int64_t bins, double min, double max);
/// Computes for each pair of neighbouring `edges` the number of elements between them, or the sum of the weights of
/// these elements if `weight` is defined.
void histogram(KernelContext& ctx, const View& out, const View& input, const View& edges, const View& weight,
               bool density);

/// Counts the occurrences of each number from 0 on, or sums the weights of these occurrences. Raises RuntimeError for
/// negative numbers.
int64_t bincount_count(KernelContext& ctx, const View& input, const View& weights, int64_t minlength);
void bincount(KernelContext& ctx, const View& out, const View& input, const View& weights, int64_t minlength);

}  // namespace rushlight::cpu
