// Padding of a tensor with its own elements: "reflect", "replicate" and "circular".
#pragma once

#include <string_view>

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Pads `input` by reflecting it at its edges ("reflect"), repeating its edges ("replicate") or continuing at its other
/// end ("circular"). `padding` has two numbers for each padded dimension: the sizes of the padding before and after it.
/// The last dimension comes first.
void pad(KernelContext& ctx, const View& out, const View& input, Ints padding, std::string_view mode);
/// Computes the gradient of `pad`: the sum of the gradients of all copies of an element.
void pad_backward(KernelContext& ctx, const View& out, const View& grad, Ints padding, std::string_view mode);

}  // namespace rushlight::cpu
