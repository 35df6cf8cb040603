// The device of new tensors when none is given: torch.set_default_device and `with torch.device(...):`.
//
// Note [The default device]
// It belongs to the bindings, which fill in the device that a user's call omits. Operators that make tensors internally
// do not use it. Calls with a tensor among their arguments (zeros_like, new_ones) follow that tensor. Each thread has
// its own.
#pragma once

#include <optional>

#include "python/python.h"

namespace rushlight::python {

/// Null if none has been set, so that the device is the CPU.
extern constinit thread_local std::optional<Device> default_device;

/// `with device:`; the blocks of a thread nest.
void enter_device(Device device);
void leave_device();

}  // namespace rushlight::python
