// Kernels that several operators share. The shared kernels of a device are looked up by name, with hash 0.
#pragma once

#include <span>

#include "rushlight/dispatch.h"

namespace rushlight {

struct SharedKernel {
    const char* name;
    KernelSlots slots;
};

std::span<SharedKernel* const> shared_kernels();

}  // namespace rushlight
