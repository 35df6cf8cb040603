// Selects and calls the kernel of an operator on a device.
#pragma once

#include "rushlight/backend.h"
#include "rushlight/dispatch.h"

namespace rushlight {

/// Calls the device's kernel among `slots`. If there is none, applies the setting of rushlight/device_fallback.h. `written`
/// lists the start addresses of the inputs that the kernel also writes.
void call_on_device(const char* op, Device device, const KernelSlots& slots, KernelPart part,
                    KernelArgs&& args, const std::vector<const void*>* written = nullptr);

}  // namespace rushlight
