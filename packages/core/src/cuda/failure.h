// Errors inside the plug-in, and their conversion to statuses.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "rushlight/backend.h"

namespace rushlight::cuda {

/// Set by `init`.
extern const HostTable* host;

/// Thrown only inside the plug-in. `guarded` converts it to a status.
struct Failure {
    BackendStatus status;
    std::string text;
};

[[noreturn, gnu::format(printf, 2, 3)]] void fail(BackendStatus status, const char* format, ...);

/// Raises Failure for an error that a function of the runtime returned.
void raise(cudaError_t error, const char* what);
inline void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) [[unlikely]]
        raise(error, what);
}

/// Records a queued call, so that an error that is detected later can name the most recent calls. Returns the number of
/// the call, which is not 0.
uint32_t remember(const DeviceCall* call);

/// Returns the name of a dtype, such as "float32".
const char* dtype_name(DType dtype);

/// Called in a catch block: stores the text of the current exception, and returns its status.
BackendStatus report();

template <class F>
BackendStatus guarded(F&& f) {
    try {
        f();
        return BackendStatus::Ok;
    } catch (...) { return report(); }
}

}  // namespace rushlight::cuda
