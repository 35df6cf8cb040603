// Copies between tensors, below all stages.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// Writes `source`, converted and broadcast, over `target`; they may share memory.
RL_API void copy_into(const Tensor& target, const Tensor& source);

/// The same where one of them or both are on devices.
void copy_across_devices(const Tensor& target, const Tensor& source);

/// Whether elements of one lie where elements of the other do, without being the same tensor in dtype and geometry.
bool overlaps(const Tensor& a, const Tensor& b);

}  // namespace rushlight
