// The context of a kernel besides its tensors, for its host code.
#pragma once

#include <cstddef>

#include "cuda/failure.h"
#include "cuda/kernel_list.h"
#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// The stream of a call, whose device becomes the thread's current one.
inline cudaStream_t queue_of(const KernelContext* context) {
    use_device(context->call->device);
    remember(context->call);
    return static_cast<cudaStream_t>(context->call->stream);
}
inline cudaStream_t queue_of(const KernelArgs& args) { return queue_of(args.context); }

/// The user's settings; with an older core that lacks this function, all are off.
inline bool permits(Setting which) {
    constexpr size_t kEnd = offsetof(HostTable, setting) + sizeof(void*);
    return host->struct_size >= kEnd && host->setting(which);
}

/// Memory until the work of the call is done.
template <class T>
T* scratch(KernelContext* context, int64_t count) {
    if (count == 0) return nullptr;
    void* data = context->scratch(context, sizeof(T) * static_cast<size_t>(count));
    if (!data) throw Failure{BackendStatus::OutOfMemory, host->last_error()};
    return static_cast<T*>(data);
}

/// Row-major strides.
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
