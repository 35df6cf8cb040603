// Elements that are not zero, or that a mask selects. The kernel that counts them keeps their bits for the kernel that
// reads or writes them: KernelContext::kept.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Writes a row of coordinates for each element that is not zero.
int64_t nonzero_count(KernelContext& ctx, const View& input);
void nonzero(KernelContext& ctx, const View& out, const View& input);
/// The first `size` rows, or `fill_value` behind them.
void nonzero_static(KernelContext& ctx, const View& out, const View& input, int64_t size, int64_t fill_value);

/// The elements where `mask`, of input's shape, is true.
int64_t masked_elements_count(KernelContext& ctx, const View& input, const View& mask);
void masked_elements(KernelContext& ctx, const View& out, const View& input, const View& mask);

/// The elements of `source`, in their order, over those of `input` where the mask, which broadcasts, is true. The check
/// raises an error if there are too few elements.
void masked_scatter_check(KernelContext& ctx, const View& input, const View& mask, const View& source);
void masked_scatter(KernelContext& ctx, const View& input, const View& mask, const View& source);

}  // namespace rushlight::cpu
