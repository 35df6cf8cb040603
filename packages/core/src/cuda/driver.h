// The functions of the CUDA runtime that the plug-in calls, in a table that tests can replace by another driver.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace rushlight::cuda {

struct Driver {
    /// Returns null if the machine's driver can be used, otherwise a text that says what is missing. This function must
    /// be called before all others.
    const char* (*missing)();
    cudaError_t (*count)(int* count);
    cudaError_t (*get_device)(int* device);
    cudaError_t (*set_device)(int device);
    cudaError_t (*attribute)(int* value, cudaDeviceAttr attribute, int device);

    cudaError_t (*properties)(cudaDeviceProp* found, int device);
    /// Returns the memory of the current device.
    cudaError_t (*memory)(size_t* free, size_t* total);
    cudaError_t (*allocate)(void** data, size_t nbytes);
    cudaError_t (*release)(void* data);
    cudaError_t (*pin)(void** data, size_t nbytes, unsigned flags);
    cudaError_t (*unpin)(void* data);
    /// Sets whether host memory is pinned, by this process or by another library.
    cudaError_t (*is_pinned)(bool* pinned, const void* data);
    cudaError_t (*copy)(void* target, const void* source, size_t nbytes, cudaMemcpyKind kind,
                        cudaStream_t stream);
    cudaError_t (*copy_peer)(void* target, int target_device, const void* source, int source_device,
                             size_t nbytes, cudaStream_t stream);

    cudaError_t (*synchronize)();
    cudaError_t (*priorities)(int* least, int* greatest);
    cudaError_t (*create_stream)(cudaStream_t* stream, unsigned flags, int priority);
    cudaError_t (*destroy_stream)(cudaStream_t stream);
    cudaError_t (*synchronize_stream)(cudaStream_t stream);
    cudaError_t (*create_event)(cudaEvent_t* event, unsigned flags);
    cudaError_t (*destroy_event)(cudaEvent_t event);
    cudaError_t (*record_event)(cudaEvent_t event, cudaStream_t stream);
    cudaError_t (*wait_event)(cudaStream_t stream, cudaEvent_t event, unsigned flags);
    cudaError_t (*query_event)(cudaEvent_t event);
    cudaError_t (*synchronize_event)(cudaEvent_t event);
    cudaError_t (*elapsed)(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

    // Graphs. A recorded graph is instantiated at once.
    cudaError_t (*begin_capture)(cudaStream_t stream, cudaStreamCaptureMode mode);
    cudaError_t (*end_capture)(cudaStream_t stream, cudaGraph_t* graph);
    cudaError_t (*is_capturing)(cudaStream_t stream, bool* capturing);
    cudaError_t (*instantiate)(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long flags);
    cudaError_t (*launch_graph)(cudaGraphExec_t graph, cudaStream_t stream);
    cudaError_t (*destroy_ready)(cudaGraphExec_t graph);
    cudaError_t (*destroy_graph)(cudaGraph_t graph);

    cudaError_t (*launch)(const void* kernel, dim3 blocks, dim3 threads, void** arguments, size_t shared,
                          cudaStream_t stream);
    /// Returns the last error of this thread and resets it.
    cudaError_t (*last_error)();
    const char* (*describe)(cudaError_t error);
};

extern const Driver driver;

}  // namespace rushlight::cuda
