// Tables of the loops of pointwise operators by dtype.
#pragma once

#include "rushlight/dtype.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// Processes `rows` rows of `n` elements. `data`, `strides` and `row_strides` have an element for each output, then for
/// each input: the address, the distance in bytes between neighbours in a row, and the distance in bytes between rows.
/// All inputs have the loop's compute dtype, except inputs that a functor takes as bool.
using LoopFn = void (*)(char* const* data, const int64_t* strides, int64_t n, const int64_t* row_strides,
                        int64_t rows, const Scalar* params);

/// Calls a loop for one row.
inline void run_row(LoopFn loop, char* const* data, const int64_t* strides, int64_t n,
                    const Scalar* params = nullptr) {
    loop(data, strides, n, strides, 1, params);
}

/// The loops of one operator, indexed by compute dtype. The entry of an unsupported dtype is null.
struct LoopTable {
    LoopFn loop[kNumDTypes];
};

inline constexpr int kMaxOperands = 6;

}  // namespace rushlight
