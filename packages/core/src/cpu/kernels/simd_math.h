// Elementary functions of whole vectors, for kernels that mask the last vector of a row. Loops without masks use
// cpu/vector_math.h.
#pragma once

#include "cpu/kernels/simd.h"
#include "cpu/vector_math.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// Returns the same values as math::exp.
template <class T>
RL_INLINE Vec<T> exp(Vec<T> x) {
    using Tr = math::detail::Traits<T>;
    using Int = Vec<typename Tr::Int>;
    x = smaller(broadcast(Tr::kExpHigh), larger(broadcast(Tr::kExpLow), x));
    const Vec<T> shifted = x * T(1.4426950408889634) + Tr::kRound;
    const Vec<T> k = shifted - Tr::kRound;
    const Vec<T> r = (x - k * Tr::kLn2High) - k * Tr::kLn2Low;
    const Vec<T> p = math::detail::exp_tail(r, T{}) * r * r + r + T(1);
    const Int n = (Int)shifted - __builtin_bit_cast(typename Tr::Int, Tr::kRound);
    const Int half = ((n + 2 * Tr::kBias) >> 1) - Tr::kBias;
    return p * (Vec<T>)((half + Tr::kBias) << Tr::kMantissa) *
           (Vec<T>)((n - half + Tr::kBias) << Tr::kMantissa);
}

/// Returns the largest lane.
template <class T>
RL_INLINE T largest(Vec<T> v) {
    using Index = LaneIndex<T>;
#pragma GCC unroll 4
    for (int step = kLanes<T> / 2; step > 0; step /= 2) {
        Index partner;
#pragma GCC unroll 16
        for (int l = 0; l < kLanes<T>; ++l) partner[l] = l ^ step;
        v = larger(v, __builtin_shuffle(v, partner));
    }
    return v[0];
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
