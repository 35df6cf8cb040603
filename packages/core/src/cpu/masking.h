// Selects elements that are not zero, or for which a mask is true. The kernel that counts the selected elements
// stores the selection in KernelContext::kept for the kernel that reads or writes them.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// nonzero_count returns the number of elements that are not zero, and nonzero writes a row of coordinates for each
/// of them.
int64_t nonzero_count(KernelContext& ctx, const View& input);
void nonzero(KernelContext& ctx, const View& out, const View& input);
/// Writes the coordinates of the first `size` elements that are not zero. Each element has one row of `out`. If there
/// are fewer such elements, the remaining rows are filled with `fill_value`.
void nonzero_static(KernelContext& ctx, const View& out, const View& input, int64_t size, int64_t fill_value);

/// Copies to `out` the elements of `input` for which `mask` is true. The mask has the shape of `input`.
int64_t masked_elements_count(KernelContext& ctx, const View& input, const View& mask);
void masked_elements(KernelContext& ctx, const View& out, const View& input, const View& mask);

/// Copies the elements of `source`, in order, to the elements of `input` for which the mask is true. The mask is
/// broadcast to the shape of `input`. masked_scatter_check raises RuntimeError if `source` has too few elements.
void masked_scatter_check(KernelContext& ctx, const View& input, const View& mask, const View& source);
void masked_scatter(KernelContext& ctx, const View& input, const View& mask, const View& source);

}  // namespace rushlight::cpu
