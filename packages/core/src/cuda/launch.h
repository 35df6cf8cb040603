// Launches of kernels.
#pragma once

#include <type_traits>

#include "cuda/driver.h"
#include "cuda/failure.h"

namespace rushlight::cuda {

struct Grid {
    unsigned blocks, threads;
    unsigned rows = 1;  // number of rows of blocks
};

#ifdef RUSHLIGHT_CUDA_ON_HOST
/// Enqueues a kernel that was compiled by the host's compiler, for the driver that tests use instead of CUDA.
template <class... P>
void launch_on_host(void (*kernel)(P...), Grid grid, cudaStream_t stream, P... arguments);
#endif

/// Enqueues `kernel` on a stream of the thread's current device. The arguments are copied during the call.
template <class... P>
void launch(void (*kernel)(P...), Grid grid, cudaStream_t stream,
            const std::type_identity_t<P>&... arguments) {
#ifdef RUSHLIGHT_CUDA_ON_HOST
    launch_on_host(kernel, grid, stream, arguments...);
#else
    void* positions[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    check(driver.launch(reinterpret_cast<const void*>(kernel), dim3(grid.blocks, grid.rows),
                        dim3(grid.threads), positions, 0, stream),
          "launching a kernel");
#endif
}

}  // namespace rushlight::cuda

#ifdef RUSHLIGHT_CUDA_ON_HOST
#include "on_host.h"
#endif
