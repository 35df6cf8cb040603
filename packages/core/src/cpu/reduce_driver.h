// Walks the elements of a reduction, in an order and in chunks that depend on the geometry alone, not on threads.
#pragma once

#include "cpu/reduce_table.h"
#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// Dimensions from the outermost to the innermost; strides of the input in bytes, of the outputs in elements.
struct ReducePlan {
    const ReduceLoops* loops;
    const Scalar* params;
    const char* in;
    int num_kept = 0, num_reduced = 0;
    int64_t kept[kMaxDims], kept_stride[kMaxDims], out_stride[kMaxDims];
    int64_t reduced[kMaxDims], reduced_stride[kMaxDims];
    char* out;
    DType out_dtype;
    char* second = nullptr;  // int64
};

void run(ReducePlan& plan);

}  // namespace rushlight::cpu
