// Reads and writes slices of a tensor along a dimension by index. The index has at most one dimension and dtype
// int64 or int32. A tensor without dimensions consists of one slice. The functions named `*_check` raise IndexError
// if an index is out of range, before anything is written. Values that are written to the same slice are combined
// in the order of the index.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

void index_select(KernelContext& ctx, const View& out, const View& input, const View& index, int64_t dim);

/// Multiplies the slices of `source` by `alpha`, and adds them to the indexed slices of `input`. The products are
/// rounded before they are added.
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
