// Tables of the loops of reductions by dtype.
#pragma once

#include "rushlight/dtype.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// The loops of one reduction over one dtype. A partial result has `acc_size` bytes, and its type is private to the
/// loops.
struct ReduceLoops {
    /// Initialises `count` partial results.
    void (*start)(char* acc, int64_t count, const Scalar* params);
    /// Adds `n` elements, `stride` bytes apart, to each of `count` partial results. The first elements of
    /// neighbouring results are `step` bytes apart; `index` is the position of these elements among all elements of
    /// their result.
    void (*accumulate)(char* acc, const char* in, int64_t count, int64_t step, int64_t n, int64_t stride,
                       int64_t index, const Scalar* params);
    /// Combines `count` partial results with the partial results `later`, which are of later elements.
    void (*join)(char* acc, const char* later, int64_t count, const Scalar* params);
    /// Converts partial results of `n` elements each to results of dtype `wide` and, if there is a second output,
    /// to its int64 values.
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
