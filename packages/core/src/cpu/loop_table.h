// The loops of pointwise operators, by dtype.
#pragma once

#include "rushlight/dtype.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// Runs over `n` elements; outputs first, then inputs; strides in bytes. All inputs have the loop's compute dtype, but
/// for those that a functor takes as bool.
using LoopFn = void (*)(char* const* data, const int64_t* strides, int64_t n, const Scalar* params);

/// The loops of one operator by compute dtype; null where it is not defined.
struct LoopTable {
    LoopFn loop[kNumDTypes];
};

inline constexpr int kMaxOperands = 6;

}  // namespace rushlight
