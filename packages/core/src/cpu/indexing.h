// Reads and writes elements by index tensors, with all of NumPy's forms of indices except masks. A dimension whose
// index is undefined is kept. The other indices are broadcast against each other, and negative indices count from
// the end. An index out of range raises IndexError before anything is written.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

void index(KernelContext& ctx, const View& out, const View& input, Views indices);
/// Writes zeros to `out`, and then adds each element of `grad` to the element of `out` that its indices select. `grad`
/// has the shape of the result of `index`.
void index_backward(KernelContext& ctx, const View& out, const View& grad, Views indices, Ints input_sizes);

/// Writes `values` to the indexed elements of `input` in the order of the indices. If `accumulate` is true, the values
/// are added to these elements. The values are broadcast to the shape of the result of `index`.
void index_put(KernelContext& ctx, const View& input, Views indices, const View& values, bool accumulate);
void index_put_check(KernelContext& ctx, const View& input, Views indices, const View& values,
                     bool accumulate);

}  // namespace rushlight::cpu
