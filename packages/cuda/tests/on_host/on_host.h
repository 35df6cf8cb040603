// Runs kernels on the host: blocks one after another, and the threads of a block as fibers that switch at barriers. Included
// by cuda/launch.h.
#pragma once

#include <functional>
#include <tuple>

#include "cuda_runtime.h"

namespace rushlight::cuda {

/// Queues work on a stream of the fake driver, and counts it as one launch.
cudaError_t queue_on_host(cudaStream_t stream, std::function<void()> work);
/// Whether launches are null, that is, return at once: fake_cuda_null_launches. Counts a null launch.
bool is_null_launch();
/// Returns an error for a grid that a GPU refuses.
cudaError_t check_grid(const Grid& grid);
/// Runs `thread` as each thread of each block.
void run_blocks(dim3 blocks, dim3 threads, const std::function<void()>& thread);

template <class... P>
void launch_on_host(void (*kernel)(P...), Grid grid, cudaStream_t stream, P... arguments) {
    check(check_grid(grid), "launching a kernel");
    if (is_null_launch()) return;
    check(queue_on_host(stream,
                        [kernel, grid, given = std::make_tuple(arguments...)] {
                            run_blocks(dim3(grid.blocks, grid.rows), dim3(grid.threads),
                                       [&] { std::apply(kernel, given); });
                        }),
          "launching a kernel");
}

}  // namespace rushlight::cuda
