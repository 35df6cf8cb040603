#include "cuda/cudnn.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cuda/driver.h"

namespace rushlight::cuda {
namespace {

constexpr const char* kFile = "libcudnn.so.9";
constexpr size_t kOldest = 91900, kBeyond = 100000;  // 9.19 or newer, but not 10
constexpr size_t kToolkit = 13;

[[noreturn]] void refuse(const std::string& why) {
    throw Failure{
        BackendStatus::Runtime,
        "cuDNN cannot be used: " + why +
            "\nhint: pip install 'nvidia-cudnn-cu13>=9.19,<10'; or set backends.cudnn.enabled = False, and "
            "convolutions use the plug-in's own kernels"};
}

/// Loads the library. The dynamic loader returns the library that the process has already loaded, if there is one, which
/// may belong to another framework.
Cudnn load() {
    void* file = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    if (!file) refuse(std::string("the library was not found: ") + dlerror());
    Cudnn found = {};
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
        if (!function) refuse(std::string(kFile) + " does not have the function " + name);
    };
    find(found.get_version, "cudnnGetVersion");
    const size_t version = found.get_version();
    if (version < kOldest || version >= kBeyond)
        refuse("the process has loaded version " + std::to_string(version / 10000) + "." +
               std::to_string(version / 100 % 100) + " of it, and 9.19 or newer, but below 10, is needed");
    find(found.get_cudart_version, "cudnnGetCudartVersion");
    if (const size_t built_for = found.get_cudart_version() / 1000; built_for != kToolkit)
        refuse("the process has loaded a build of it for CUDA " + std::to_string(built_for) +
               ", and one for CUDA " + std::to_string(kToolkit) + " is needed");
    find(found.describe, "cudnnGetErrorString");
    find(found.last_error, "cudnnGetLastErrorString");
    find(found.create, "cudnnCreate");
    find(found.set_stream, "cudnnSetStream");
    find(found.create_descriptor, "cudnnBackendCreateDescriptor");
    find(found.destroy_descriptor, "cudnnBackendDestroyDescriptor");
    find(found.set, "cudnnBackendSetAttribute");
    find(found.get, "cudnnBackendGetAttribute");
    find(found.finalize, "cudnnBackendFinalize");
    find(found.execute, "cudnnBackendExecute");
    return found;
}

/// The handles of a device that no thread uses. A handle must not be used by two threads at once.
struct Idle {
    std::mutex mutex;
    std::map<int32_t, std::vector<cudnnHandle_t>> handles;
};
Idle& idle() {
    static auto* all = new Idle;  // never destroyed, because handles are never freed
    return *all;
}

cudnnHandle_t take(int32_t device) {
    {
        std::lock_guard lock(idle().mutex);
        if (auto& free = idle().handles[device]; !free.empty()) {
            const cudnnHandle_t handle = free.back();
            free.pop_back();
            return handle;
        }
    }
    cudnnHandle_t made = nullptr;
    check(cudnn().create(&made), "starting cuDNN");
    return made;
}
void put_back(int32_t device, cudnnHandle_t handle) {
    std::lock_guard lock(idle().mutex);
    idle().handles[device].push_back(handle);
}

BackendStatus status_of(cudnnStatus_t status) {
    switch (status) {
        case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
        case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED: return BackendStatus::OutOfMemory;
        default:
            return status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 ? BackendStatus::NotImplemented
                                                                      : BackendStatus::Runtime;
    }
}

}  // namespace

const Cudnn& cudnn() {
    static const Cudnn found = load();  // if it fails, the next call tries again
    return found;
}

void raise(cudnnStatus_t status, const char* what) {
    // The library does not say why a launch failed. CUDA's error does, and the plug-in names the last operators for it.
    if (status / 1000 == CUDNN_STATUS_EXECUTION_FAILED / 1000) check(driver.last_error(), what);
    char text[400] = "";
    cudnn().last_error(text, sizeof text);
    text[sizeof text - 1] = 0;
    const std::string why(std::string_view(text).substr(0, std::string_view(text).find('\n')));
    throw Failure{status_of(status), std::string(what) + ": cuDNN returned " + cudnn().describe(status) +
                                         (why.empty() ? "" : ": " + why)};
}

CudnnHandle::CudnnHandle(int32_t device, cudaStream_t stream) : device_(device), handle_(take(device)) {
    if (const cudnnStatus_t status = cudnn().set_stream(handle_, stream); status != CUDNN_STATUS_SUCCESS) {
        put_back(device_, handle_);
        raise(status, "choosing cuDNN's stream");
    }
}

CudnnHandle::~CudnnHandle() { put_back(device_, handle_); }

}  // namespace rushlight::cuda
