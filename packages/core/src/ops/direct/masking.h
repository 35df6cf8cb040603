// Elements that a mask chooses.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::direct {

/// The elements of `input` where `mask`, a bool tensor of its shape on the CPU, is true.
Tensor chosen_elements(const Tensor& input, const Tensor& mask);

}  // namespace rushlight::direct
