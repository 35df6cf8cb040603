// Runs a pointwise loop over strided operands, in blocks, on threads, converting where dtypes differ.
#pragma once

#include "cpu/loop_table.h"
#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// Operand 0 is the output. Sizes from the outermost dimension to the innermost; strides in bytes.
struct PointwisePlan {
    int ndim;
    int num_operands;
    int64_t sizes[kMaxDims];
    char* data[kMaxOperands];
    int64_t strides[kMaxOperands][kMaxDims];
    DType dtype[kMaxOperands];       // in memory
    DType loop_dtype[kMaxOperands];  // in the loop
    LoopFn loop;
    const Scalar* params;
};

/// Drops dimensions of size one and merges those that are contiguous to each other in every operand.
void coalesce(PointwisePlan& plan);
/// Puts the smallest stride of the output innermost, so that memory is written in order.
void sort_dimensions(PointwisePlan& plan);
void run(const PointwisePlan& plan);

/// Elements below which a second thread costs more than it brings.
inline constexpr int64_t kGrain = 32768;

}  // namespace rushlight::cpu
