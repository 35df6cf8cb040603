// How an operator's kernel on a device is found and called.
#pragma once

#include "rushlight/backend.h"
#include "rushlight/dispatch.h"

namespace rushlight {

/// Calls the device's kernel among `slots`. If it has none, rushlight/device_fallback.h applies. Inputs that
/// begin at one of the positions `written` are written too.
void call_on_device(const char* op, Device device, const KernelSlots& slots, KernelPart part,
                    KernelArgs&& args, const std::vector<const void*>* written = nullptr);

}  // namespace rushlight
