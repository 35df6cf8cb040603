// Runs reductions. The order of the elements, and the chunks into which they are divided, depend on the shapes and
// strides only, not on the number of threads.
#pragma once

#include "cpu/reduce_table.h"
#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// Dimensions are listed from the outermost to the innermost. The strides of the input are in bytes, and the strides of
/// the outputs are in elements.
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
