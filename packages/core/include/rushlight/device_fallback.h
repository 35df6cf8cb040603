// The treatment of operators for which a device has no kernel.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

enum class DeviceFallback : int {
    Error,  // NotImplementedError
    Warn,  // the CPU computes it over copies; the first call of each operator warns, with the bytes that moved
};

RL_API DeviceFallback device_fallback();
/// Returns the former one.
RL_API DeviceFallback set_device_fallback(DeviceFallback choice);

}  // namespace rushlight
