// Copies between tensors, below all stages.
#pragma once

#include "dispatch/shared_kernel.h"
#include "rushlight/tensor.h"

namespace rushlight {

/// Writes `source`, converted and broadcast, over `target`; they may share memory. With `non_blocking` the host does not
/// wait for a copy between a device and pinned memory.
RL_API void copy_into(const Tensor& target, const Tensor& source, bool non_blocking = false);

/// The same if one or both of them are on devices.
void copy_across_devices(const Tensor& target, const Tensor& source, bool non_blocking = false);

/// The same from one view to another of the same sizes.
extern SharedKernel copy_kernel;

/// Whether elements of one lie where elements of the other do, without being the same tensor in dtype and geometry.
bool overlaps(const Tensor& a, const Tensor& b);

}  // namespace rushlight
