// Errors inside the plug-in, and how they leave it.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "rushlight/backend.h"

namespace rushlight::cuda {

/// Set by `init`.
extern const HostTable* host;

/// Thrown only inside the plug-in; `guarded` converts it to a status.
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

/// Records that work was queued, so that late errors can name the last queued operators. The ticket is not 0.
uint32_t remember(const DeviceCall* call);

/// "float32".
const char* dtype_name(DType dtype);

/// The text and the status of an exception that is being handled.
BackendStatus report();

template <class F>
BackendStatus guarded(F&& f) {
    try {
        f();
        return BackendStatus::Ok;
    } catch (...) { return report(); }
}

}  // namespace rushlight::cuda
