// Loops of pointwise operators and reductions by dtype, and their operands.
#pragma once

#include <cuda_runtime.h>

#include <span>

#include "ops/cell.h"
#include "rushlight/dtype.h"
#include "rushlight/kernel.h"

namespace rushlight::cuda {

inline constexpr int kLoopOperands = 6;
inline constexpr int kLoopDims = 8;
/// The largest number of elements of one launch. Kernels count elements in 32 bits. Tests use a smaller value.
#ifndef RUSHLIGHT_CUDA_LAUNCH_ELEMENTS
#define RUSHLIGHT_CUDA_LAUNCH_ELEMENTS (int64_t{1} << 30)
#endif
inline constexpr int64_t kLaunchElements = RUSHLIGHT_CUDA_LAUNCH_ELEMENTS;

/// An operand of a pass: memory with strides in bytes, or a single number if `data` is null.
struct PassOperand {
    char* data;
    DType dtype;       // dtype of the memory
    DType loop_dtype;  // dtype in which the loop reads or writes it
    int64_t strides[kLoopDims];
    Cell number;
};

/// One pass over elements. The operands are the output, followed by the inputs. The dimensions are in the order of the
/// output's memory, the innermost last, and are joined where possible.
struct Pass {
    int count;
    int ndim;
    int64_t n;
    int64_t sizes[kLoopDims];
    PassOperand operands[kLoopOperands];
};

using LoopFn = void (*)(const Pass& pass, const Scalar* params, cudaStream_t stream);

/// The loops of one operator, indexed by compute dtype. The entry of a dtype is null if the operator is not defined for
/// it.
struct LoopTable {
    LoopFn loop[kNumDTypes];
};

/// A part of the elements from which a result is computed. It has several dimensions only if it has at most
/// kLaunchElements elements.
struct ReducedPart {
    int dims;
    int64_t n;
    int64_t sizes[kLoopDims], strides[kLoopDims];
    int64_t first;  // the index of the part's first element
    int64_t offset;  // its distance in bytes from the first element of all parts
};

/// A reduction. Each of `count` results is computed from `n` elements. Strides are in bytes, and the dimensions are in
/// the same order as in a Pass. There is at least one part. The parts are in the order of the indices of their elements.
struct Reduction {
    int kept_dims;
    int64_t count, n;
    int64_t kept[kLoopDims], kept_in[kLoopDims], kept_out[kLoopDims], kept_second[kLoopDims];
    std::span<const ReducedPart> parts;
    const char* in;
    char* out;
    DType out_dtype;
    char* second;  // int64, or null
};

using ReduceFn = void (*)(const Reduction& reduction, const Scalar* params, KernelContext* context);

/// The loops of one reduction, indexed by the dtype of the input. The entry of a dtype is null if the operator is not
/// defined for it.
struct ReduceTable {
    ReduceFn loop[kNumDTypes];
};

}  // namespace rushlight::cuda
