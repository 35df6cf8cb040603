// Runs a pointwise loop over strided operands on several threads, and converts operands of other dtypes in blocks.
#pragma once

#include "cpu/loop_table.h"
#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// Operand 0 is the output. Dimensions are listed from the outermost to the innermost, and strides are in bytes.
struct PointwisePlan {
    int ndim;
    int num_operands;
    int64_t sizes[kMaxDims];
    char* data[kMaxOperands];
    int64_t strides[kMaxOperands][kMaxDims];
    DType dtype[kMaxOperands];  // in memory
    DType loop_dtype[kMaxOperands];  // in the loop
    LoopFn loop;
    const Scalar* params;
    // The loop is vectorised for adjacent elements only, so others are copied to blocks of adjacent elements first.
    bool packs = false;
};

/// Drops dimensions of size 1, and merges neighbouring dimensions whose strides allow it in every operand.
void coalesce(PointwisePlan& plan);
/// Sorts the dimensions so that the output's strides decrease from the outermost to the innermost dimension, and memory
/// is written in order.
void sort_dimensions(PointwisePlan& plan);
void run(const PointwisePlan& plan);

/// Number of elements below which a second thread costs more time than it saves.
inline constexpr int64_t kGrain = 32768;

}  // namespace rushlight::cpu
