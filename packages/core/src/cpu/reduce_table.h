// Tables of the loops of reductions by dtype.
#pragma once

#include "rushlight/dtype.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// The loops of one reduction for one dtype. A partial result has `acc_size` bytes, whose format only these loops use.
struct ReduceLoops {
    /// Initialises `count` partial results.
    void (*start)(char* acc, int64_t count, const Scalar* params);
    /// Combines each of `count` partial results with `n` further elements, which are `stride` bytes apart. The first
    /// elements for neighbouring results are `step` bytes apart. `index` is the position of this first element among
    /// all elements of its result.
    void (*accumulate)(char* acc, const char* in, int64_t count, int64_t step, int64_t n, int64_t stride,
                       int64_t index, const Scalar* params);
    /// Combines `count` partial results with the partial results `later`, which were computed from later elements.
    void (*join)(char* acc, const char* later, int64_t count, const Scalar* params);
    /// Converts `count` partial results, each of `n` elements, to results of dtype `wide`, and writes them to `out`. If
    /// the operator has a second output, also writes its int64 values to `second`.
    void (*finish)(char* out, char* second, const char* acc, int64_t count, int64_t n, const Scalar* params);
    DType wide;
    uint8_t acc_size;
    bool has_identity;  // a reduction of no elements has a result
    bool ordered;  // results depend on the elements' indices, so their order must be kept
};

/// The loops of a reduction, indexed by the dtype of the input.
struct ReduceTable {
    ReduceLoops loop[kNumDTypes];
};

}  // namespace rushlight
