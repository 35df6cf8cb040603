// What the machine and the process's control group allow.
#pragma once

#include <cstdint>

namespace rushlight::detail {

/// The smaller of the machine's memory and the limits of the control group and its ancestors.
uint64_t memory_available_to_process();

/// Processors that this thread may run on, held to the control group's quota; at least 1.
int processors_available_to_process();

}  // namespace rushlight::detail
