// The context of a call, for the host code of kernels.
#pragma once

#include <cstddef>

#include "cuda/failure.h"
#include "cuda/kernel_list.h"
#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// Returns the stream of a call, and makes the call's device the thread's current device.
inline cudaStream_t queue_of(const KernelContext* context) {
    use_device(context->call->device);
    remember(context->call);
    return static_cast<cudaStream_t>(context->call->stream);
}
inline cudaStream_t queue_of(const KernelArgs& args) { return queue_of(args.context); }

/// Returns a setting of the user. With an older core that lacks this function, all settings are off.
inline bool permits(Setting which) {
    constexpr size_t kEnd = offsetof(HostTable, setting) + sizeof(void*);
    return host->struct_size >= kEnd && host->setting(which);
}

/// Returns memory that stays allocated until the call's work on the device is done.
template <class T>
T* scratch(KernelContext* context, int64_t count) {
    if (count == 0) return nullptr;
    void* data = context->scratch(context, sizeof(T) * static_cast<size_t>(count));
    if (!data) throw Failure{BackendStatus::OutOfMemory, host->last_error()};
    return static_cast<T*>(data);
}

/// Row-major strides of a shape.
struct RowMajor {
    int64_t strides[64];
    RowMajor(const int64_t* sizes, int ndim) {
        int64_t step = 1;
        for (int d = ndim - 1; d >= 0; --d) {
            strides[d] = step;
            step *= sizes[d];
        }
    }
};

}  // namespace rushlight::cuda
