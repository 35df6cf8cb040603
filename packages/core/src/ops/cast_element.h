// Conversion of one element to another dtype, as copies do it on every device.
#pragma once

#include <limits>
#include <type_traits>

#include "rushlight/complex.h"
#include "rushlight/export.h"
#include "rushlight/float8.h"
#include "rushlight/half.h"

namespace rushlight {
namespace {

// Converts a number to int64 if `To` is int64, uint64, uint32 or uint8, and otherwise to int32, as in PyTorch. NaN and values out of range become
// the smallest integer, as on x86, whereas the conversion of C++ is undefined for them and differs between devices.
template <class To, class From>
RL_HD inline auto convert_to_signed(From v) {
    using Signed = std::conditional_t<std::is_same_v<To, int64_t> || std::is_same_v<To, uint64_t> ||
                                          std::is_same_v<To, uint32_t> || std::is_same_v<To, uint8_t>,
                                      int64_t, int32_t>;
    constexpr Signed kSmallest = std::numeric_limits<Signed>::min();
    constexpr From kBound = -static_cast<From>(kSmallest);
    return v >= -kBound && v < kBound ? static_cast<Signed>(v) : kSmallest;
}

template <class To, class From>
RL_HD inline To convert(From v) {
    if constexpr (kIsComplex<From> && kIsComplex<To>) {
        return To(v);
    } else if constexpr (kIsComplex<To>) {
        return To(static_cast<Real<To>>(v));
    } else if constexpr (std::is_same_v<To, bool>) {
        return static_cast<bool>(v != From(0));
    } else if constexpr (kIsComplex<From>) {
        return convert<To>(v.re);  // drops the imaginary part
    } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint64_t>) {
        // int64 cannot represent the upper half of the range of uint64.
        constexpr From kHalf = From(0x1p63);
        return v >= kHalf ? static_cast<uint64_t>(convert_to_signed<To>(v - kHalf)) + (uint64_t{1} << 63)
                          : static_cast<uint64_t>(convert_to_signed<To>(v));
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        return static_cast<To>(convert_to_signed<To>(v));
    } else if constexpr (std::is_same_v<From, bool>) {
        return static_cast<To>(__builtin_bit_cast(uint8_t, v));  // loops over bools are not vectorised
    } else {
        return static_cast<To>(v);
    }
}

template <class T>
inline constexpr bool kConvertsByFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float8E8M0FNU>;
template <int mantissa, int bias, Float8Range range>
inline constexpr bool kConvertsByFloat<Float8<mantissa, bias, range>> = true;

// Half types and float8 are converted through float.
template <class To, class From>
RL_HD inline To cast_element(From v) {
    constexpr bool from_half = kConvertsByFloat<From>, to_half = kConvertsByFloat<To>;
    if constexpr (std::is_same_v<To, From>) return v;
    else if constexpr (from_half && to_half) return To(static_cast<float>(v));
    else if constexpr (from_half) return convert<To>(static_cast<float>(v));
    else if constexpr (to_half) return To(convert<float>(v));
    else return convert<To>(v);
}

}  // namespace
}  // namespace rushlight
