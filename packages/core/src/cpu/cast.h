// Conversion between dtypes, element by element.
#pragma once

#include "cpu/capability.h"
#include "rushlight/dtype.h"
#include "rushlight/error.h"
#include "rushlight/scalar.h"

namespace rushlight::cpu {

/// `loop[to][from]` converts strided elements between two dtypes. Strides are in bytes, operand 0 is the output,
/// and `params` is not used.
struct CastTable {
    using Loop = void (*)(char* const* data, const int64_t* strides, int64_t n, const Scalar* params);
    Loop loop[kNumDTypes][kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(CastTable, cast_loops)

inline CastTable::Loop cast_loop(DType to, DType from) {
    const CastTable::Loop loop = cast_loops().loop[static_cast<int>(to)][static_cast<int>(from)];
    RL_CHECK(loop, throw_not_implemented, "conversion from %s to %s is not supported yet", name(from),
             name(to));
    return loop;
}

}  // namespace rushlight::cpu
