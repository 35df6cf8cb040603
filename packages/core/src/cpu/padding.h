// Tensors between what they take from themselves.
#pragma once

#include <string_view>

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `input` mirrored at its edges ("reflect"), with its edges repeated ("replicate"), or from its other end ("circular"). `amounts`
/// has two numbers for each dimension from the last on, before and after.
void pad(KernelContext& ctx, const View& out, const View& input, Ints amounts, std::string_view mode);
/// The gradient of `pad`: what was taken several times adds up.
void pad_backward(KernelContext& ctx, const View& out, const View& grad, Ints amounts, std::string_view mode);

}  // namespace rushlight::cpu
