// Positions in sorted sequences, membership and distinct elements.
#pragma once

#include <string_view>

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Where each element of `input` would go among boundaries of its dtype, of one dimension for all or a row for each row;
/// `sorter` may be absent. RuntimeError where it is out of range.
void searchsorted(KernelContext& ctx, const View& out, const View& boundaries, const View& input,
                  const View& sorter, bool out_int32, bool right);

/// Whether each element of `input` is in `sorted`, of its dtype and one dimension.
void isin_sorted(KernelContext& ctx, const View& out, const View& input, const View& sorted, bool invert);

/// Distinct elements, or rows along the first dimension: in rising order or, of neighbours alone, in theirs. Which of them
/// each is, and how often each occurs, if requested.
int64_t unique_elements_count(KernelContext& ctx, const View& input, bool consecutive, bool return_inverse,
                              bool return_counts);
void unique_elements(KernelContext& ctx, const View& values, const View& inverse, const View& counts,
                     const View& input, bool consecutive, bool return_inverse, bool return_counts);
int64_t unique_rows_count(KernelContext& ctx, const View& input, bool consecutive, bool return_inverse,
                          bool return_counts);
void unique_rows(KernelContext& ctx, const View& values, const View& inverse, const View& counts,
                 const View& input, bool consecutive, bool return_inverse, bool return_counts);

}  // namespace rushlight::cpu
