// Reads and writes elements at positions that an index tensor gives. An index without elements may have any shape
// and dtype. Values for the same element are combined by one thread, in the order of the indices. The functions
// named `*_check` raise an error if an index is out of range, before anything is written.
#pragma once

#include <string_view>

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes out[i][j] = input[index[i][j]][j] for dim 0. `out` has the shape of `index`.
void gather(KernelContext& ctx, const View& out, const View& input, const View& index, int64_t dim);

/// Sets input[index[i][j]][j] = src[i][j] for dim 0. `src` may be larger than `index`.
void scatter(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim);
void scatter_value(KernelContext& ctx, const View& input, const View& index, int64_t dim, const Param& value);
void scatter_add(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim);
void scatter_check(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim);
void scatter_value_check(KernelContext& ctx, const View& input, const View& index, int64_t dim,
                         const Param& value);
void scatter_add_check(KernelContext& ctx, const View& input, const View& index, const View& src,
                       int64_t dim);

/// Combines the values for each element by `reduce`: "sum", "prod", "mean", "amax" or "amin". `src` has the shape
/// of `index`.
void scatter_reduce(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim,
                    std::string_view reduce, bool include_self, std::string_view caller);
void scatter_reduce_check(KernelContext& ctx, const View& input, const View& index, const View& src,
                          int64_t dim, std::string_view reduce, bool include_self, std::string_view caller);

/// Reads (take) or writes (put) elements by their index in the flattened tensor. Negative indices count from the
/// end.
void take(KernelContext& ctx, const View& out, const View& input, const View& index);
void put(KernelContext& ctx, const View& input, const View& index, const View& source, bool accumulate);
void put_check(KernelContext& ctx, const View& input, const View& index, const View& source, bool accumulate);

}  // namespace rushlight::cpu
