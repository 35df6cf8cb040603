// Bodies of kind "direct": operators that make their own tensors.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight::direct {

// copy.cpp
Tensor copy_(const Tensor& input, const Tensor& src, bool non_blocking);
Tensor clone(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor detach(const Tensor& input);

}  // namespace rushlight::direct
