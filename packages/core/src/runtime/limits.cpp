#include "limits.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>

namespace rushlight::detail {

namespace {

/// Calls `visit` with the folder of the process's control group in the hierarchy of `controller`, and then with the
/// folder of each ancestor of this group. If `controller` is "", the hierarchy is that of version 2 of control groups.
/// In a container, the group's path may be its path on the host. The container then has only the root folder of this
/// path.
void for_each_group(const std::string& root, const std::string& controller,
                    const std::function<void(const std::string&)>& visit) {
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // hierarchy-id:controllers:path
        size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        bool unified = controllers == ",,";
        if (controller.empty() ? !unified : controllers.find("," + controller + ",") == std::string::npos)
            continue;
        std::string path = line.substr(second + 1);
        if (path.empty() || path[0] != '/') continue;
        std::string base = root + (unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller);
        while (true) {
            if (path == "/") path.clear();
            visit(base + path);
            if (path.empty()) return;
            path.erase(path.rfind('/'));
        }
    }
}

template <class T>
bool read_number(const std::string& path, T& value) {
    std::ifstream file(path);
    return static_cast<bool>(file >> value);
}

/// Reads the value in a line "name value" of a file, and converts it to bytes.
bool read_entry(const std::string& path, const std::string& name, uint64_t& value) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(name + " ")) continue;
        value = std::strtoull(line.c_str() + name.size(), nullptr, 10) << (line.ends_with(" kB") ? 10 : 0);
        return true;
    }
    return false;
}

/// The amount of memory that is left in the control group or in one of its ancestors, whichever has the least. Memory
/// that a group's statistics list under one of the names in `reclaimable` counts as unused.
uint64_t left_in_groups(const std::string& root, std::initializer_list<const char*> reclaimable) {
    uint64_t left = UINT64_MAX;
    auto lower = [&](const std::string& folder, const char* limit_file, const char* usage_file,
                     const std::string& prefix) {
        uint64_t limit, used;
        if (!read_number(folder + limit_file, limit) || !read_number(folder + usage_file, used)) return;
        for (const char* name : reclaimable) {
            uint64_t bytes = 0;
            read_entry(folder + "/memory.stat", prefix + name, bytes);
            used -= std::min(used, bytes);
        }
        left = std::min(left, limit - std::min(limit, used));
    };
    for_each_group(root, "",
                   [&](const std::string& folder) { lower(folder, "/memory.max", "/memory.current", ""); });
    for_each_group(root, "memory", [&](const std::string& folder) {
        lower(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_");
    });
    return left;
}

}  // namespace

uint64_t group_memory_limit(const std::string& root) {
    uint64_t limit = UINT64_MAX;
    auto lower = [&limit](const std::string& path) {
        // If there is no limit, the file contains "max", which is not a number.
        if (uint64_t bytes; read_number(path, bytes) && bytes > 0) limit = std::min(limit, bytes);
    };
    for_each_group(root, "", [&](const std::string& folder) { lower(folder + "/memory.max"); });
    for_each_group(root, "memory",
                   [&](const std::string& folder) { lower(folder + "/memory.limit_in_bytes"); });
    return limit;
}

double group_processor_quota(const std::string& root) {
    double limit = std::numeric_limits<double>::infinity();
    auto lower = [&limit](double quota, double period) {
        if (quota > 0 && period > 0) limit = std::min(limit, quota / period);
    };
    for_each_group(root, "", [&](const std::string& folder) {
        std::ifstream file(folder + "/cpu.max");
        if (double quota, period; file >> quota >> period) lower(quota, period);
    });
    for_each_group(root, "cpu", [&](const std::string& folder) {
        double quota, period;
        if (read_number(folder + "/cpu.cfs_quota_us", quota) &&
            read_number(folder + "/cpu.cfs_period_us", period))
            lower(quota, period);
    });
    return limit;
}

uint64_t memory_left_to_process(const std::string& root) {
    uint64_t left = UINT64_MAX;
    if (uint64_t free; read_entry(root + "/proc/meminfo", "MemAvailable:", free)) left = free;
    return std::min(left, left_in_groups(root, {"inactive_file"}));
}

uint64_t memory_before_group_limit(const std::string& root) {
    uint64_t left = left_in_groups(root, {"inactive_file", "active_file", "slab_reclaimable"}), swap = 0;
    read_entry(root + "/proc/meminfo", "SwapFree:", swap);
    return left > UINT64_MAX - swap ? UINT64_MAX : left + swap;
}

AddressSpace address_space() {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {UINT64_MAX, 0};
    std::ifstream file("/proc/self/statm");
    uint64_t pages = 0;
    file >> pages;
    return {limit.rlim_cur, pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
}

uint64_t memory_available_to_process(const std::string& root) {
    auto machine =
        static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return std::min(machine, group_memory_limit(root));
}

int processors_available_to_process(const std::string& root) {
    double limit = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
    // The set is enlarged until it suffices: a cpu_set_t of fixed size fails on machines with more than 1024
    // processors.
    for (size_t width = 1024; width <= size_t{1} << 20; width *= 2) {
        cpu_set_t* set = CPU_ALLOC(width);
        if (!set) break;
        size_t nbytes = CPU_ALLOC_SIZE(width);
        bool known = sched_getaffinity(0, nbytes, set) == 0;
        if (known) limit = std::min(limit, static_cast<double>(CPU_COUNT_S(nbytes, set)));
        CPU_FREE(set);
        if (known) break;
    }
    limit = std::min(limit, std::ceil(group_processor_quota(root)));
    return std::max(1, static_cast<int>(limit));
}

}  // namespace rushlight::detail
