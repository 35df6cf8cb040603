// Maps elements to unsigned integers of the same order, for sorting by bits.
#pragma once

#include <type_traits>

#include "ops/functors/bits.h"
#include "rushlight/export.h"

namespace rushlight::functors {
namespace {

/// Both zeros have the same key. NaN has the largest key.
template <class T>
RL_HD inline KeyOf<T> key_of(T value) {
    using Key = KeyOf<T>;
    constexpr Key kSign = static_cast<Key>(Key(1) << (8 * sizeof(T) - 1));
    const Key bits = __builtin_bit_cast(Key, value);
    if constexpr (kInfinityBits<T> != 0) {
        const Key magnitude = static_cast<Key>(bits & ~kSign);
        const Key ordered = static_cast<Key>(bits & kSign ? ~bits : bits | kSign);
        const Key number = magnitude == 0 ? kSign : ordered;
        return magnitude > kInfinityBits<T> ? static_cast<Key>(~Key(0)) : number;
    } else if constexpr (std::is_signed_v<T>) {
        return static_cast<Key>(bits ^ kSign);
    } else {
        return bits;
    }
}

}  // namespace
}  // namespace rushlight::functors
