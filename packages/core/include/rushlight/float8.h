// Element types of the float8 dtypes. They are converted to and from float, and have no arithmetic.
#pragma once

#include <bit>
#include <cstdint>

#include "rushlight/export.h"

namespace rushlight {

// Note [Float8]
// The formats store a sign, an exponent and a mantissa in eight bits. A number is rounded to the nearest number of the
// format, and ties are rounded to even. Numbers beyond the range, and infinity, are converted as follows:
//   float8_e4m3fn (OCP): to the largest number. The format has no infinity; NaN has all bits set.
//   float8_e5m2 (OCP, as in IEEE 754): to infinity.
//   float8_e4m3fnuz and float8_e5m2fnuz: to NaN, which has the bits of negative zero in other formats. These formats
//   have neither negative zero nor infinity.
// float8_e8m0fnu (OCP MX) stores only an exponent: its values are the powers of two from 2^-127 to 2^127, and NaN. A
// conversion drops the sign, and converts zero to the smallest power. As in PyTorch, numbers between the two smallest powers
// are converted to the larger one.

/// How a format represents numbers beyond its range: by its largest number (`Saturating`), by infinity (`Infinite`), or
/// by NaN (`Unsigned`). In `Unsigned` formats, zero has no sign.
enum class Float8Range : uint8_t { Saturating, Infinite, Unsigned };

template <int kMantissa, int kBias, Float8Range kRange>
struct Float8 {
    uint8_t bits;

    Float8() = default;
    RL_HD explicit Float8(float value) : bits(from_float(value)) {}
    RL_HD operator float() const { return to_float(bits); }

    // Written without branches, so that compilers can vectorise it.
    RL_HD static uint8_t from_float(float value) {
        constexpr int kShift = 23 - kMantissa;
        constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
        constexpr uint32_t kLeastNormal = kRebias + (1u << 23);
        constexpr uint32_t kAdder = static_cast<uint32_t>(127 + 1 - kBias - kMantissa + 23) << 23;
        const uint32_t x = std::bit_cast<uint32_t>(value);
        const uint32_t magnitude = x & 0x7fffffffu;
        const uint32_t sign = (x >> 24) & 0x80u;
        // For subnormal results, the addition of a large float does the rounding.
        const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kAdder);
        const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - kAdder;
        const uint32_t odd = (magnitude >> kShift) & 1u;
        const uint32_t normal = (magnitude + odd + (1u << (kShift - 1)) - 1u - kRebias) >> kShift;
        const bool is_nan = magnitude > 0x7f800000u;
        uint32_t code = magnitude < kLeastNormal ? subnormal : normal;
        if constexpr (kRange == Float8Range::Unsigned) {
            code = code > 0x7fu || is_nan ? 0x80u : code == 0 ? 0u : code | sign;
        } else {
            constexpr uint32_t kMost = kRange == Float8Range::Saturating ? 0x7eu : 0x7cu;
            code = sign | (is_nan ? 0x7fu : code > kMost ? kMost : code);
        }
        return static_cast<uint8_t>(code);
    }
    RL_HD static float to_float(uint8_t code) {
        constexpr float kLeast =
            std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias - kMantissa) << 23);
        const uint32_t magnitude = code & 0x7fu;
        const uint32_t sign = (code & 0x80u) << 24;
        const uint32_t normal = (magnitude << (23 - kMantissa)) + (static_cast<uint32_t>(127 - kBias) << 23);
        const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * kLeast;
        uint32_t x = magnitude >> kMantissa ? normal : std::bit_cast<uint32_t>(subnormal);
        if constexpr (kRange == Float8Range::Saturating) x = magnitude == 0x7fu ? 0x7fc00000u : x;
        if constexpr (kRange == Float8Range::Infinite)
            x = magnitude >= 0x7cu ? 0x7f800000u | (magnitude & 3u) << 21 : x;
        x |= sign;
        if constexpr (kRange == Float8Range::Unsigned) x = code == 0x80u ? 0x7fc00000u : x;
        return std::bit_cast<float>(x);
    }
};

using Float8E4M3FN = Float8<3, 7, Float8Range::Saturating>;
using Float8E5M2 = Float8<2, 15, Float8Range::Infinite>;
using Float8E4M3FNUZ = Float8<3, 8, Float8Range::Unsigned>;
using Float8E5M2FNUZ = Float8<2, 16, Float8Range::Unsigned>;

struct Float8E8M0FNU {
    uint8_t bits;

    Float8E8M0FNU() = default;
    RL_HD explicit Float8E8M0FNU(float value) : bits(from_float(value)) {}
    RL_HD operator float() const { return to_float(bits); }

    RL_HD static uint8_t from_float(float value) {
        const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
        const uint32_t exponent = magnitude >> 23, mantissa = magnitude & 0x7fffffu;
        // A number halfway between two powers of two is rounded to the larger power. If the exponent bits are 0, the
        // mantissa 0x400000 is not halfway: it is the smallest power, 2^-127. Infinity and NaN, whose exponents have all
        // bits set, keep their exponent.
        const uint32_t least = 0x400000u + (exponent == 0);
        return static_cast<uint8_t>(exponent + (mantissa >= least && exponent != 0xffu));
    }
    RL_HD static float to_float(uint8_t code) {
        const uint32_t power = static_cast<uint32_t>(code) << 23;
        return std::bit_cast<float>(code == 0 ? 0x00400000u : code == 0xffu ? 0x7fc00000u : power);
    }
};

}  // namespace rushlight
