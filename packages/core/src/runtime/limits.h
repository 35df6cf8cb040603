// Limits of the machine and of the process's control group.
#pragma once

#include <cstdint>
#include <string>

namespace rushlight::detail {

// `root` is a prefix of the paths /proc and /sys, for tests.

/// The smaller of the machine's memory and the limits of the control group and its ancestors, in bytes.
uint64_t memory_available_to_process(const std::string& root = "");

/// The unused part of the memory that memory_available_to_process() returns. Memory that the system can reclaim from
/// its file cache counts as unused.
uint64_t memory_left_to_process(const std::string& root = "");

/// The amount of memory that the process can still take under the limits of its control groups, if the system reclaims
/// all of the file cache and swaps out as much as it can; UINT64_MAX without a limit. If the processes of the group
/// take more, the kernel kills processes.
uint64_t memory_before_group_limit(const std::string& root = "");

/// The limit of the process's address space (RLIMIT_AS), UINT64_MAX without a limit, and the bytes of it in use.
struct AddressSpace {
    uint64_t limit, used;
};
AddressSpace address_space();

/// The number of processors that this thread may run on, limited by the control group's quota; at least 1.
int processors_available_to_process(const std::string& root = "");

/// The lowest memory limit of the control group and its ancestors; UINT64_MAX if there is none.
uint64_t group_memory_limit(const std::string& root);
/// The lowest processor quota of the control group and its ancestors; infinity if there is none.
double group_processor_quota(const std::string& root);

}  // namespace rushlight::detail
