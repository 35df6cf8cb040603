// Limits of the machine and of the process's control group.
#pragma once

#include <cstdint>
#include <string>

namespace rushlight::detail {

// `root` is a prefix of /proc and /sys, for tests.

/// The smaller of the machine's memory and the limits of the control group and its ancestors, in bytes.
uint64_t memory_available_to_process(const std::string& root = "");

/// The unused part of it; memory that the system can take back from its file cache counts as
/// unused.
uint64_t memory_left_to_process(const std::string& root = "");

/// The most memory that the process's control groups let it take, assuming that the system reclaims all of the file
/// cache and swaps out all it can; UINT64_MAX without a limit. Beyond that the kernel kills processes.
uint64_t memory_before_group_limit(const std::string& root = "");

/// Processors that this thread may run on, held to the control group's quota; at least 1.
int processors_available_to_process(const std::string& root = "");

/// The lowest memory limit of the control group and its ancestors; UINT64_MAX without one.
uint64_t group_memory_limit(const std::string& root);
/// The lowest quota of processors of the control group and its ancestors; infinity without one.
double group_processor_quota(const std::string& root);

}  // namespace rushlight::detail
