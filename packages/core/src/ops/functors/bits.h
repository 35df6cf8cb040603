// The bits of floating-point numbers.
#pragma once

#include "ops/element_types.h"

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

// The parts of a number of a half type.
inline constexpr uint16_t kSignBit = 0x8000, kMagnitudeBits = 0x7fff;

}  // namespace
}  // namespace rushlight::functors
