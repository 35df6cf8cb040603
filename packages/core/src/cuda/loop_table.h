// The CUDA loops of pointwise operators and reductions, by dtype.
#pragma once

#include <cuda_runtime.h>

#include "rushlight/dtype.h"
#include "rushlight/scalar.h"

namespace rushlight::cuda {

/// Queues a pass over `n` elements; outputs first, then inputs; strides in bytes. All inputs have the loop's compute
/// dtype, but for those that a functor takes as bool.
using LoopFn = cudaError_t (*)(char* const* data, const int64_t* strides, int64_t n, const Scalar* params,
                               cudaStream_t stream);

/// The loops of one operator by compute dtype; null where it is not defined.
struct LoopTable {
    LoopFn loop[kNumDTypes];
};

/// Queues `count` reductions of `n` elements each. `second`, where there is one, gets the index beside the value.
/// `step` is the way in bytes from the elements of one result to those of the next, `stride` from one element to the
/// next.
using ReduceFn = cudaError_t (*)(char* out, char* second, const char* in, int64_t count, int64_t step,
                                 int64_t n, int64_t stride, const Scalar* params, cudaStream_t stream);

/// The reductions of one operator by the dtype of its input; null where it is not defined.
struct ReduceTable {
    ReduceFn loop[kNumDTypes];
};

}  // namespace rushlight::cuda
