// Maps elements to unsigned integers of the same order, for sorting by bits.
#pragma once

#include <type_traits>

#include "ops/element_types.h"
#include "rushlight/export.h"

namespace rushlight::functors {
namespace {

template <int size> struct UnsignedOf;
template <> struct UnsignedOf<1> {
    using type = uint8_t;
};
template <> struct UnsignedOf<2> {
    using type = uint16_t;
};
template <> struct UnsignedOf<4> {
    using type = uint32_t;
};
template <> struct UnsignedOf<8> {
    using type = uint64_t;
};
template <class T>
using KeyOf = typename UnsignedOf<sizeof(T)>::type;

template <class T>
inline constexpr KeyOf<T> kInfinityBits = 0;
template <>
inline constexpr uint16_t kInfinityBits<Half> = 0x7c00;
template <>
inline constexpr uint16_t kInfinityBits<BFloat16> = 0x7f80;
template <>
inline constexpr uint32_t kInfinityBits<float> = 0x7f800000;
template <>
inline constexpr uint64_t kInfinityBits<double> = 0x7ff0000000000000;

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
