// A backend that has only the required functions: memory of the host, no streams, and three kernels. Macros select variants:
// an older plug-in (SMALL_ABI), a plug-in for an earlier version of this ABI (SMALL_SIZE bytes of the struct), or for a
// later version (SMALL_LATER). SMALL_LACKS gives the dtypes that its `add` does not support.
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "rushlight/backend.h"

#ifndef SMALL_ABI
#define SMALL_ABI kBackendAbi
#endif
#ifndef SMALL_SIZE
#define SMALL_SIZE sizeof(Later)
#endif

namespace {

using namespace rushlight;

const HostTable* host;

/// Members that a later version of the contract might add.
struct Later {
    Backend backend;
#ifdef SMALL_LATER
    BackendStatus (*of_the_future)(int32_t);
    uint64_t more[8];
#endif
};

BackendStatus init(const HostTable* table) {
    host = table;
    return BackendStatus::Ok;
}

BackendStatus allocate(int32_t, size_t nbytes, void*, void** data) {
    *data = std::aligned_alloc(64, (nbytes + 63) / 64 * 64);
    return *data ? BackendStatus::Ok : BackendStatus::OutOfMemory;
}

BackendStatus copy(const DeviceCopy* c) {
    std::memcpy(c->target, c->source, c->nbytes);
    return BackendStatus::Ok;
}

// The CPU's kernels compute the results. found[i] is the kernel that run<i> calls.
const void* found[3];
template <int i>
BackendStatus run(const KernelArgs* args) {
    return host->run_cpu_kernel(found[i], args, args->context->random);
}

BackendStatus kernel(const char* name, uint64_t hash, KernelPart part, BackendKernel* result) {
    constexpr const char* kNames[] = {"copy", "add", "sum"};
    constexpr BackendKernel kKernels[] = {run<0>, run<1>, run<2>};
    for (int i = 0; i < 3; ++i) {
        if (std::strcmp(name, kNames[i]) != 0) continue;
        const BackendStatus status = host->cpu_kernel(name, hash, part, &found[i]);
        *result = found[i] ? kKernels[i] : nullptr;
        return status;
    }
    return BackendStatus::Ok;
}

const Later small = [] {
    Later made{};
    Backend& b = made.backend;
    b.struct_size = static_cast<uint32_t>(SMALL_SIZE);
    b.abi = SMALL_ABI;
    b.name = "small";
    b.type = DeviceType::Plugin;
    b.probe = [](const HostTable*) { return BackendStatus::Ok; };
    b.init = init;
    b.device_count = [](int32_t* count) {
        *count = 1;
        return BackendStatus::Ok;
    };
    b.allocate = allocate;
    b.release = [](int32_t, void* data, size_t) {
        std::free(data);
        return BackendStatus::Ok;
    };
    b.copy = copy;
    b.synchronize_device = [](int32_t) { return BackendStatus::Ok; };
    b.synchronize_stream = [](int32_t, void*) { return BackendStatus::Ok; };
    b.kernel = kernel;
#ifdef SMALL_LACKS  // a bit mask of dtypes
    b.lacks = [](const char* name, uint64_t, uint64_t* dtypes) {
        if (std::strcmp(name, "add") == 0) *dtypes = SMALL_LACKS;
        return BackendStatus::Ok;
    };
#endif
    return made;
}();

}  // namespace

extern "C" RL_API const rushlight::Backend* rushlight_backend() { return &small.backend; }
