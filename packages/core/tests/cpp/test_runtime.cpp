// sources: src/runtime/limits.cpp src/runtime/library.cpp src/runtime/interrupt.cpp src/runtime/error.cpp

// Small parts of the runtime: limits of the machine, libraries that are opened at first use, interrupts.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "check.h"
#include "runtime/library.h"
#include "runtime/limits.h"
#include "rushlight/interrupt.h"

using namespace rushlight;
using namespace rushlight::detail;

namespace {

/// A folder that a test uses as the root of the file system.
struct Machine {
    std::string root;

    Machine() {
        char name[] = "/tmp/rushlight-test-XXXXXX";
        root = mkdtemp(name);
    }
    ~Machine() { std::filesystem::remove_all(root); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
        std::ofstream(root + path) << text;
    }
};

}  // namespace

TEST(control_groups_version_2) {
    Machine machine;
    machine.write("/proc/self/cgroup", "0::/slice/job\n");
    CHECK_EQUAL(group_memory_limit(machine.root), UINT64_MAX);
    CHECK(std::isinf(group_processor_quota(machine.root)));
    machine.write("/sys/fs/cgroup/slice/job/memory.max", "max\n");
    machine.write("/sys/fs/cgroup/slice/memory.max", "1073741824\n");
    machine.write("/sys/fs/cgroup/slice/job/cpu.max", "250000 100000\n");
    machine.write("/sys/fs/cgroup/slice/cpu.max", "max 100000\n");
    CHECK_EQUAL(group_memory_limit(machine.root), 1073741824u);  // the limit of a parent group applies
    CHECK_EQUAL(group_processor_quota(machine.root), 2.5);
    CHECK(memory_available_to_process(machine.root) <= 1073741824u);
    machine.write("/sys/fs/cgroup/slice/job/cpu.max", "10000 100000\n");
    CHECK_EQUAL(processors_available_to_process(machine.root), 1);
}

TEST(control_groups_version_1) {
    Machine machine;
    machine.write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/box/1\n2:cpuacct,cpu:/box\n0::/\n");
    machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    machine.write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "500000000\n");
    machine.write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
    machine.write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    CHECK_EQUAL(group_memory_limit(machine.root), 500000000u);
    CHECK(std::isinf(group_processor_quota(machine.root)));
    machine.write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "150000\n");
    CHECK_EQUAL(group_processor_quota(machine.root), 1.5);
}

TEST(a_container_sees_only_its_root) {
    Machine machine;
    machine.write("/proc/self/cgroup", "0::/docker/0123456789abcdef\n");  // this path exists only on the host
    machine.write("/sys/fs/cgroup/memory.max", "2000000000\n");
    CHECK_EQUAL(group_memory_limit(machine.root), 2000000000u);
}

TEST(what_is_left) {
    Machine machine;
    machine.write("/proc/self/cgroup", "0::/job\n");
    CHECK_EQUAL(memory_left_to_process(machine.root), UINT64_MAX);
    machine.write("/proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:     900 kB\nBuffers: 5 kB\n");
    CHECK_EQUAL(memory_left_to_process(machine.root), 900 * 1024u);
    machine.write("/sys/fs/cgroup/job/memory.max", "600000\n");
    machine.write("/sys/fs/cgroup/job/memory.current", "500000\n");
    CHECK_EQUAL(memory_left_to_process(machine.root), 100'000u);
    machine.write("/sys/fs/cgroup/job/memory.stat", "anon 200000\ninactive_file 300000\n");
    CHECK_EQUAL(memory_left_to_process(machine.root), 400'000u);
    machine.write("/sys/fs/cgroup/job/memory.current",
                  "900001\n");  // usage may be above the limit for a moment
    CHECK_EQUAL(memory_left_to_process(machine.root), 0u);
    machine.write("/proc/self/cgroup", "4:memory:/box\n");
    machine.write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "700000\n");
    machine.write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "300000\n");
    machine.write("/sys/fs/cgroup/memory/box/memory.stat", "inactive_file 5\ntotal_inactive_file 100000\n");
    CHECK_EQUAL(memory_left_to_process(machine.root), 500'000u);
}

TEST(what_is_left_before_the_kernel_ends_processes) {
    Machine machine;
    machine.write("/proc/self/cgroup", "0::/job\n");
    machine.write("/proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:     1 kB\nSwapFree: 0 kB\n");
    CHECK_EQUAL(memory_before_group_limit(machine.root),
                UINT64_MAX);  // no group limits the machine's memory
    machine.write("/sys/fs/cgroup/job/memory.max", "600000\n");
    machine.write("/sys/fs/cgroup/job/memory.current", "500000\n");
    CHECK_EQUAL(memory_before_group_limit(machine.root), 100'000u);
    machine.write("/sys/fs/cgroup/job/memory.stat",
                  "anon 200000\ninactive_file 30000\nactive_file 50000\nslab_reclaimable 7000\n");
    CHECK_EQUAL(memory_before_group_limit(machine.root), 187'000u);
    machine.write("/proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:     1 kB\nSwapFree: 2 kB\n");
    CHECK_EQUAL(memory_before_group_limit(machine.root), 189'048u);
}

TEST(odd_files_mean_no_limit) {
    Machine machine;
    for (const char* text : {"", "nonsense", "4:memory", "::::\n", "0::\n"}) {
        machine.write("/proc/self/cgroup", text);
        CHECK_EQUAL(group_memory_limit(machine.root), UINT64_MAX);
        CHECK(processors_available_to_process(machine.root) >= 1);
    }
}

TEST(a_library_is_opened_when_it_is_needed) {
    LazyLibrary math("libm.so.6");  // not in our folder; the loader finds it
    CHECK_EQUAL(math.function<double(double)>("cos")(0.0), 1.0);
    CHECK(math.symbol("no_such_function") == nullptr);
    CHECK_EQUAL(math.why_not(), "");
    CHECK_RAISES(Runtime, "libm.so.6: has no function 'no_such_function'",
                 math.function<void()>("no_such_function"));
}

TEST(a_missing_library_says_where_it_was_looked_for) {
    static LazyLibrary missing("librushlight_no_such_thing.so");
    CHECK(!missing.available());
    CHECK(missing.symbol("anything") == nullptr);
    CHECK(missing.why_not().find(own_folder() + "librushlight_no_such_thing.so") != std::string::npos);
    CHECK_RAISES(Runtime, "librushlight_no_such_thing.so: ", missing.function<void()>("anything"));
}

TEST(threads_may_open_a_library_together) {
    static LazyLibrary math("libm.so.6"), missing("librushlight_no_such_thing.so");
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([] {
            CHECK(math.available());
            CHECK(!missing.available() && !missing.why_not().empty());
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(interrupts) {
    CHECK(!interrupted());
    check_interrupted();
    CHECK(set_interrupt_hook([] { return true; }) == nullptr);
    CHECK(interrupted());
    CHECK_RAISES(Interrupted, "interrupted", check_interrupted());
    set_interrupt_hook([] { return false; });
    check_interrupted();
    CHECK(set_interrupt_hook(nullptr) != nullptr);
}
