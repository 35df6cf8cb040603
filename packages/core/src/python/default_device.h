// Where tensors are made when no device is named: torch.set_default_device and `with torch.device(...):`.
//
// Note [The default device]
// It belongs to the bindings: what a user's call leaves out is filled in there, so that no operator that makes tensors for itself
// uses it. Calls with a tensor among their arguments (zeros_like, new_ones) follow that tensor. Each thread has its own.
#pragma once

#include <optional>

#include "python/python.h"

namespace rushlight::python {

/// Null where the device is the CPU because none has been set.
extern constinit thread_local std::optional<Device> default_device;

/// `with device:`; the blocks of a thread nest.
void enter_device(Device device);
void leave_device();

}  // namespace rushlight::python
