// Reading and writing slices along a dimension by index. An index has at most one dimension, of int64 or int32; a tensor
// without dimensions is one slice. The checks read values only: they raise where an index is out of range, before anything
// is written. Values written to the same slice are combined in the order of the index.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

void index_select(KernelContext& ctx, const View& out, const View& input, const View& index, int64_t dim);

/// Adds `alpha` times the slices of `source`, whose products are rounded before they are added.
void index_add(KernelContext& ctx, const View& input, const View& index, const View& source, int64_t dim,
               const Param& alpha);
void index_add_check(KernelContext& ctx, const View& input, const View& index, const View& source,
                     int64_t dim, const Param& alpha);

void index_copy(KernelContext& ctx, const View& input, const View& index, const View& source, int64_t dim);
void index_copy_check(KernelContext& ctx, const View& input, const View& index, const View& source,
                      int64_t dim);

/// Negative indices count from the end.
void index_fill(KernelContext& ctx, const View& input, const View& index, int64_t dim, const Param& value);
void index_fill_check(KernelContext& ctx, const View& input, const View& index, int64_t dim,
                      const Param& value);

}  // namespace rushlight::cpu
