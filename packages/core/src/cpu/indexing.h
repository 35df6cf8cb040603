// Reading and writing by index tensors, with all of NumPy's forms of indices except masks. Absent indices keep a
// dimension, the others broadcast against each other; negative ones count from the end. IndexError where one is out of
// range, before anything is written.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

void index(KernelContext& ctx, const View& out, const View& input, Views indices);
/// Zeros to which `grad`, of the indexed shape, is added.
void index_backward(KernelContext& ctx, const View& out, const View& grad, Views indices, Ints input_sizes);

/// Writes, or adds, values that broadcast to the indexed shape, in the order of the indices.
void index_put(KernelContext& ctx, const View& input, Views indices, const View& values, bool accumulate);
void index_put_check(KernelContext& ctx, const View& input, Views indices, const View& values,
                     bool accumulate);

}  // namespace rushlight::cpu
