// The device of new tensors when none is given: torch.set_default_device and `with torch.device(...):`.
//
// Note [The default device]
// Only the bindings use the default device: they insert it where a user's call omits the device. Operators that make
// tensors internally do not use the default device. Calls with a tensor among their arguments (zeros_like, new_ones)
// use the device of that tensor. Each thread has its own default device.
#pragma once

#include <optional>

#include "python/python.h"

namespace rushlight::python {

/// The default device of this thread. If it has no value, no default device has been set, and the CPU is used.
extern constinit thread_local std::optional<Device> default_device;

/// Implement `with device:`. The blocks of a thread may be nested.
void enter_device(Device device);
void leave_device();

}  // namespace rushlight::python
