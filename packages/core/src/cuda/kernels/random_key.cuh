// The key of a call's random numbers: Note [Random values].
#pragma once

#include "rushlight/philox.h"

namespace rushlight::cuda {
namespace {

/// The key is passed with the call, or it is in the device's memory, which is read when the kernel runs.
struct KeyPosition {
    PhiloxKey own;
    const PhiloxKey* base;
    explicit KeyPosition(const KernelContext* context)
        : own(context->random), base(context->call->random_base) {}
    __device__ PhiloxKey key() const { return base ? PhiloxKey{base->seed, base->offset + own.offset} : own; }
};

/// Returns uniform number `i` of a call, with the precision of T.
template <class T>
__device__ T uniform_at(PhiloxKey key, int64_t i) {
    const auto at = static_cast<uint64_t>(i);
    if constexpr (sizeof(T) == 4) return uniform_float(philox(key, at / 4).word[at % 4]);
    else return uniform_double(philox(key, at / 2).wide(static_cast<int>(at % 2)));
}

}  // namespace
}  // namespace rushlight::cuda
