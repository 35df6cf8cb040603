// Loops of reductions, by dtype.
#pragma once

#include "rushlight/dtype.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// The loops of one reduction over one dtype. They work on partial results of `acc_size` bytes, whose type is private to
/// them.
struct ReduceLoops {
    /// Initialises `count` partial results.
    void (*start)(char* acc, int64_t count, const Scalar* params);
    /// Adds `n` elements, `stride` bytes apart, to each of `count` partial results. The first elements of neighbouring
    /// results lie `step` bytes apart, and have number `index` among the elements of their result.
    void (*accumulate)(char* acc, const char* in, int64_t count, int64_t step, int64_t n, int64_t stride,
                       int64_t index, const Scalar* params);
    /// Joins `count` partial results of later elements to those of earlier elements.
    void (*join)(char* acc, const char* later, int64_t count, const Scalar* params);
    /// Turns partial results of `n` elements each into results of dtype `wide`, and where there is a second output into
    /// its int64 values.
    void (*finish)(char* out, char* second, const char* acc, int64_t count, int64_t n, const Scalar* params);
    DType wide;
    uint8_t acc_size;
    bool has_identity;  // no elements have a result
    bool ordered;  // elements are numbered: the walk may not change their order
};

/// By dtype of the input.
struct ReduceTable {
    ReduceLoops loop[kNumDTypes];
};

}  // namespace rushlight
