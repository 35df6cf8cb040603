// Loops of pointwise operators and reductions by dtype, and what they run over.
#pragma once

#include <cuda_runtime.h>

#include "ops/cell.h"
#include "rushlight/dtype.h"
#include "rushlight/kernel.h"

namespace rushlight::cuda {

inline constexpr int kLoopOperands = 6;
inline constexpr int kLoopDims = 8;
/// The most elements that one launch handles, since kernels count in 32 bits.
inline constexpr int64_t kLaunchElements = int64_t{1} << 30;

/// An operand of a pass: memory, strides in bytes; or a number, where `data` is null.
struct PassOperand {
    char* data;
    DType dtype;       // of the memory
    DType loop_dtype;  // in which the loop takes it
    int64_t strides[kLoopDims];
    Cell number;
};

/// One pass over elements: the output, then the inputs. Dimensions are in the order of the output's memory, the last one the
/// nearest, and as few as there can be.
struct Pass {
    int count;
    int ndim;
    int64_t n;
    int64_t sizes[kLoopDims];
    PassOperand operands[kLoopOperands];
};

using LoopFn = void (*)(const Pass& pass, const Scalar* params, cudaStream_t stream);

/// The loops of one operator by compute dtype; null where it is not defined.
struct LoopTable {
    LoopFn loop[kNumDTypes];
};

/// A reduction: each of `count` results is made of `n` elements. Strides in bytes; dimensions as in a pass.
struct Reduction {
    int kept_dims, reduced_dims;
    int64_t count, n;
    int64_t kept[kLoopDims], kept_in[kLoopDims], kept_out[kLoopDims], kept_second[kLoopDims];
    int64_t reduced[kLoopDims], reduced_in[kLoopDims];
    const char* in;
    char* out;
    DType out_dtype;
    char* second;  // int64, or null
};

using ReduceFn = void (*)(const Reduction& reduction, const Scalar* params, KernelContext* context);

/// The reductions of one operator by the dtype of its input; null where it is not defined.
struct ReduceTable {
    ReduceFn loop[kNumDTypes];
};

}  // namespace rushlight::cuda
