// Conversion between dtypes, element by element.
#pragma once

#include "cpu/capability.h"
#include "cpu/loop_table.h"
#include "rushlight/dtype.h"
#include "rushlight/error.h"
#include "rushlight/scalar.h"

namespace rushlight::cpu {

/// `loop[to][from]` converts strided elements between two dtypes. Strides are in bytes, operand 0 is the output,
/// and `params` is not used.
struct CastTable {
    LoopFn loop[kNumDTypes][kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(CastTable, cast_loops)

inline LoopFn cast_loop(DType to, DType from) {
    const LoopFn loop = cast_loops().loop[static_cast<int>(to)][static_cast<int>(from)];
    RL_CHECK(loop, throw_not_implemented, "conversion from %s to %s is not supported yet", name(from),
             name(to));
    return loop;
}

}  // namespace rushlight::cpu
