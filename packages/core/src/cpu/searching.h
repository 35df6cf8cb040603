// Positions in sorted sequences, membership tests and distinct elements.
#pragma once

#include <string_view>

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes the position at which each element of `input` would be inserted into the sorted `boundaries`. The
/// boundaries have the dtype of `input`. They have either one dimension, or one row for each row of `input`. `sorter`
/// may be undefined. Raises RuntimeError if an index in `sorter` is out of range.
void searchsorted(KernelContext& ctx, const View& out, const View& boundaries, const View& input,
                  const View& sorter, bool out_int32, bool right);

/// Writes for each element of `input` whether it occurs in `sorted`, which has the same dtype and one dimension. If
/// `invert` is true, writes whether it does not occur.
void isin_sorted(KernelContext& ctx, const View& out, const View& input, const View& sorted, bool invert);

/// Finds distinct elements, or distinct rows along the first dimension, in ascending order. If `consecutive` is true,
/// only equal neighbours are merged, and the results keep the order of the input. If requested, `inverse` receives for
/// each element the index of its value among the distinct values, and `counts` receives for each distinct value the
/// number of its occurrences.
int64_t unique_elements_count(KernelContext& ctx, const View& input, bool consecutive, bool return_inverse,
                              bool return_counts);
void unique_elements(KernelContext& ctx, const View& values, const View& inverse, const View& counts,
                     const View& input, bool consecutive, bool return_inverse, bool return_counts);
int64_t unique_rows_count(KernelContext& ctx, const View& input, bool consecutive, bool return_inverse,
                          bool return_counts);
void unique_rows(KernelContext& ctx, const View& values, const View& inverse, const View& counts,
                 const View& input, bool consecutive, bool return_inverse, bool return_counts);

}  // namespace rushlight::cpu
