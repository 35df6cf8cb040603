// Reads and writes elements at positions that an index tensor gives. An index without elements may have any shape
// and dtype. Values for the same element are combined by one thread, in the order of the indices. The functions
// named `*_check` raise an error if an index is out of range, before anything is written.
#pragma once

#include <string_view>

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// For dim=0, sets out[i][j] = input[index[i][j]][j]. `out` has the shape of `index`.
void gather(KernelContext& ctx, const View& out, const View& input, const View& index, int64_t dim);

/// For dim=0, sets input[index[i][j]][j] = src[i][j]. `src` may be larger than `index`.
void scatter(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim);
void scatter_value(KernelContext& ctx, const View& input, const View& index, int64_t dim, const Param& value);
void scatter_add(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim);
void scatter_check(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim);
void scatter_value_check(KernelContext& ctx, const View& input, const View& index, int64_t dim,
                         const Param& value);
void scatter_add_check(KernelContext& ctx, const View& input, const View& index, const View& src,
                       int64_t dim);

/// Combines all elements of `src` that have the same target element. `reduce` names the operation: "sum", "prod",
/// "mean", "amax" or "amin". `src` has the shape of `index`.
void scatter_reduce(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim,
                    std::string_view reduce, bool include_self, std::string_view caller);
void scatter_reduce_check(KernelContext& ctx, const View& input, const View& index, const View& src,
                          int64_t dim, std::string_view reduce, bool include_self, std::string_view caller);

/// `take` reads the elements that have the given indices in the flattened tensor. `put` writes these elements. Negative
/// indices count from the end.
void take(KernelContext& ctx, const View& out, const View& input, const View& index);
void put(KernelContext& ctx, const View& input, const View& index, const View& source, bool accumulate);
void put_check(KernelContext& ctx, const View& input, const View& index, const View& source, bool accumulate);

}  // namespace rushlight::cpu
