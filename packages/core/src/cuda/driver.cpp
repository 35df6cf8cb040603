// The driver table for machines with CUDA.
#include "cuda/driver.h"

#include <dlfcn.h>

#include <cstdio>

namespace rushlight::cuda {
namespace {

/// Checks for a driver without calling the CUDA runtime. The first call of the runtime would load all of it, which
/// takes a tenth of a second even if there is no driver.
const char* missing() {
    static char text[200];
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "this machine has no NVIDIA driver: libcuda.so.1 was not found";
    using Init = int (*)(unsigned);
    using Read = int (*)(int*);
    const auto init = reinterpret_cast<Init>(dlsym(library, "cuInit"));
    const auto version = reinterpret_cast<Read>(dlsym(library, "cuDriverGetVersion"));
    const auto count = reinterpret_cast<Read>(dlsym(library, "cuDeviceGetCount"));
    if (!init || !version || !count)
        return "libcuda.so.1 is not an NVIDIA driver: it lacks cuInit or another needed function";
    int number = 0;
    constexpr int kNeeded = CUDART_VERSION / 1000 * 1000;
    if (version(&number) == 0 && number < kNeeded) {
        std::snprintf(text, sizeof text,
                      "the NVIDIA driver is too old: it supports CUDA %d.%d, and %d.0 or newer is needed\n"
                      "hint: install a newer driver (580 or above)",
                      number / 1000, number % 1000 / 10, kNeeded / 1000);
        return text;
    }
    constexpr int kNoDevice = 100;
    const int started = init(0);
    if (started == kNoDevice || (started == 0 && count(&number) == 0 && number == 0))
        return "the NVIDIA driver finds no device\n"
               "hint: check that CUDA_VISIBLE_DEVICES does not hide all devices";
    if (started != 0) {
        std::snprintf(text, sizeof text, "the NVIDIA driver cannot be initialised: cuInit returned error %d",
                      started);
        return text;
    }
    return nullptr;
}

// Wrappers without overloads and default arguments, so that their addresses can be stored in the table.
cudaError_t pin(void** data, size_t nbytes, unsigned flags) { return cudaHostAlloc(data, nbytes, flags); }
cudaError_t properties(cudaDeviceProp* found, int device) { return cudaGetDeviceProperties(found, device); }
cudaError_t allocate(void** data, size_t nbytes) { return cudaMalloc(data, nbytes); }
cudaError_t is_pinned(bool* pinned, const void* data) {
    cudaPointerAttributes found;
    const cudaError_t error = cudaPointerGetAttributes(&found, data);
    *pinned = error == cudaSuccess && found.type != cudaMemoryTypeUnregistered;
    return error;
}
cudaError_t create_event(cudaEvent_t* event, unsigned flags) {
    return cudaEventCreateWithFlags(event, flags);
}
cudaError_t launch(const void* kernel, dim3 blocks, dim3 threads, void** arguments, size_t shared,
                   cudaStream_t stream) {
    return cudaLaunchKernel(kernel, blocks, threads, arguments, shared, stream);
}
cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return cudaStreamWaitEvent(stream, event, flags);
}
cudaError_t instantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(ready, graph, flags);
}
cudaError_t is_capturing(cudaStream_t stream, bool* capturing) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &status);
    *capturing = status != cudaStreamCaptureStatusNone;
    return error;
}
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) { return cudaEventRecord(event, stream); }

}  // namespace

const Driver driver = {
    .missing = missing,
    .count = cudaGetDeviceCount,
    .get_device = cudaGetDevice,
    .set_device = cudaSetDevice,
    .attribute = cudaDeviceGetAttribute,
    .properties = properties,
    .memory = cudaMemGetInfo,
    .allocate = allocate,
    .release = cudaFree,
    .pin = pin,
    .unpin = cudaFreeHost,
    .is_pinned = is_pinned,
    .copy = cudaMemcpyAsync,
    .copy_peer = cudaMemcpyPeerAsync,
    .synchronize = cudaDeviceSynchronize,
    .priorities = cudaDeviceGetStreamPriorityRange,
    .create_stream = cudaStreamCreateWithPriority,
    .destroy_stream = cudaStreamDestroy,
    .synchronize_stream = cudaStreamSynchronize,
    .create_event = create_event,
    .destroy_event = cudaEventDestroy,
    .record_event = record_event,
    .wait_event = wait_event,
    .query_event = cudaEventQuery,
    .synchronize_event = cudaEventSynchronize,
    .elapsed = cudaEventElapsedTime,
    .begin_capture = cudaStreamBeginCapture,
    .end_capture = cudaStreamEndCapture,
    .is_capturing = is_capturing,
    .instantiate = instantiate,
    .launch_graph = cudaGraphLaunch,
    .destroy_ready = cudaGraphExecDestroy,
    .destroy_graph = cudaGraphDestroy,
    .launch = launch,
    .last_error = cudaGetLastError,
    .describe = cudaGetErrorString,
};

}  // namespace rushlight::cuda
