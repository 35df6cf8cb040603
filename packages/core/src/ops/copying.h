// Copies between tensors, below all stages.
#pragma once

#include "dispatch/shared_kernel.h"
#include "rushlight/tensor.h"

namespace rushlight {

/// Copies `source` to `target`, with conversion and broadcasting. The memory of the two tensors may overlap. With
/// `non_blocking`, the host does not wait for a copy between a device and pinned memory.
RL_API void copy_into(const Tensor& target, const Tensor& source, bool non_blocking = false);

/// Copies like copy_into, if at least one of the tensors is on a device.
void copy_across_devices(const Tensor& target, const Tensor& source, bool non_blocking = false);

/// The kernel that copies a view to another view of the same sizes, with conversion of the dtype.
extern SharedKernel copy_kernel;

/// Whether the memory of the tensors overlaps. Returns false if both tensors have the same memory, dtype and geometry.
bool overlaps(const Tensor& a, const Tensor& b);

}  // namespace rushlight
