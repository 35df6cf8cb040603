// The treatment of operators for which a device has no kernel.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

enum class DeviceFallback : int {
    Error,  // raise NotImplementedError
    Warn,  // compute on the CPU with copies; the first call of each operator warns with the bytes copied
};

RL_API DeviceFallback device_fallback();
/// Sets what happens if a device has no kernel for an operator. Returns the former setting.
RL_API DeviceFallback set_device_fallback(DeviceFallback choice);

}  // namespace rushlight
