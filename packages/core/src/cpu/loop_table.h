// Tables of the loops of pointwise operators by dtype.
#pragma once

#include "rushlight/dtype.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// Processes `n` elements. `data` and `strides` (in bytes) list the outputs first, then the inputs. All inputs have
/// the loop's compute dtype, except those that a functor takes as bool.
using LoopFn = void (*)(char* const* data, const int64_t* strides, int64_t n, const Scalar* params);

/// The loops of one operator, indexed by compute dtype. The entry of an unsupported dtype is null.
struct LoopTable {
    LoopFn loop[kNumDTypes];
};

inline constexpr int kMaxOperands = 6;

}  // namespace rushlight
