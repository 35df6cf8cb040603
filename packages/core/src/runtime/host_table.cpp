// Core's functions for plug-ins: HostTable.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "dispatch/shared_kernel.h"
#include "runtime/attached.h"
#include "runtime/run_on_cpu.h"
#include "rushlight/dispatch.h"
#include "rushlight/error.h"
#include "rushlight/interrupt.h"
#include "rushlight/site.h"

namespace rushlight {

static std::atomic<int32_t> settings[] = {0, 1, 1, 0, 1, 1, 1, 0, 10, 0, 0};  // in the order of Setting

int32_t setting(Setting which) {
    return settings[static_cast<size_t>(which)].load(std::memory_order_relaxed);
}
int32_t set_setting(Setting which, int32_t value) {
    return settings[static_cast<size_t>(which)].exchange(value);
}

}  // namespace rushlight

namespace rushlight::detail {

thread_local std::string backend_error;

namespace {

void set_error(const char* text) { backend_error = text ? text : ""; }

void log(LogLevel level, const char* text) {
    if (level >= LogLevel::Warning) std::fprintf(stderr, "rushlight: %s\n", text);
}

void describe_call(const DeviceCall* call, char* text, size_t size) {
    if (size == 0) return;
    std::string where = UnderAllocatorLock::holds() ? "" : describe(Site{call->site});
    std::snprintf(text, size, "%s", where.empty() ? (call->op ? call->op : "") : where.c_str());
}

/// The type of the CPU kernel that `cpu_kernel` returns. Objects are never freed.
struct CpuKernel {
    KernelFn before, run;
};

BackendStatus cpu_kernel(const char* name, uint64_t hash, KernelPart part, const void** kernel) try {
    static std::mutex mutex;
    static auto* made = new std::map<std::pair<const KernelSlots*, KernelPart>, CpuKernel>;
    *kernel = nullptr;
    const KernelSlots* slots = nullptr;
    if (const Operator* op = find_operator(name); op && op->hash == hash) slots = op->kernels;
    for (const SharedKernel* shared : shared_kernels())
        if (hash == 0 && std::strcmp(shared->name, name) == 0) slots = &shared->slots;
    if (!slots) return BackendStatus::Ok;
    constexpr auto cpu = static_cast<size_t>(DeviceType::CPU);
    const CpuKernel found = part == KernelPart::Run ? CpuKernel{slots->before[cpu], slots->device[cpu]}
                                                    : CpuKernel{nullptr, slots->before[cpu]};
    if (!found.run) return BackendStatus::Ok;
    std::lock_guard lock(mutex);
    *kernel = &made->try_emplace({slots, part}, found).first->second;
    return BackendStatus::Ok;
} catch (const std::bad_alloc&) {
    set_error("the host has no memory left");
    return BackendStatus::OutOfMemory;
}

BackendStatus run_cpu_kernel(const void* kernel, const KernelArgs* args, PhiloxKey random) try {
    KernelArgs complete{};
    std::memcpy(&complete, args, std::min<size_t>(args->struct_size, sizeof complete));
    const auto& found = *static_cast<const CpuKernel*>(kernel);
    run_on_cpu(found.before, found.run, complete, random);
    return BackendStatus::Ok;
} catch (const Error& error) {
    set_error(error.what());
    // Errors of kinds that the plug-in interface lacks become RuntimeError.
    return error.kind() <= ErrorKind::Buffer
               ? static_cast<BackendStatus>(static_cast<int32_t>(error.kind()) + 1)
               : BackendStatus::Runtime;
} catch (const std::bad_alloc&) {
    set_error("the host has no memory left");
    return BackendStatus::OutOfMemory;
} catch (const std::exception& error) {
    set_error(error.what());
    return BackendStatus::Runtime;
}

}  // namespace

const HostTable host_table = {
    .struct_size = sizeof(HostTable),
    .abi = kBackendAbi,
    .set_error = set_error,
    .last_error = []() -> const char* { return backend_error.c_str(); },
    .log = log,
    .interrupted = []() -> int32_t { return interrupted(); },
    .describe = describe_call,
    .create_allocator = create_allocator,
    .allocate = allocator_allocate,
    .release = allocator_release,
    .record_use = allocator_record_use,
    .cpu_kernel = cpu_kernel,
    .run_cpu_kernel = run_cpu_kernel,
    // A newer plug-in may request settings that this version lacks.
    .setting = [](Setting which) -> int32_t {
        const auto i = static_cast<size_t>(which);
        return i < std::size(settings) ? setting(which) : 0;
    },
    .current_device = [](DeviceType type) -> int32_t { return current_device(type); },
};

}  // namespace rushlight::detail
