// float16 and bfloat16 as stored values. They convert to and from float, and arithmetic on them is done in float.
#pragma once

#include <bit>
#include <cstdint>

#include "rushlight/export.h"

namespace rushlight {

struct Half {
    uint16_t bits;

    Half() = default;
    RL_HD explicit Half(float value) : bits(from_float(value)) {}
    RL_HD operator float() const { return to_float(bits); }

    // IEEE 754 binary16, round to nearest even. The branches are simple enough for compilers to vectorise.
    RL_HD static uint16_t from_float(float value) {
        uint32_t x = std::bit_cast<uint32_t>(value);
        uint32_t sign = (x >> 16) & 0x8000u;
        uint32_t magnitude = x & 0x7fffffffu;
        if (magnitude >= 0x47800000u) {  // overflow, infinity, NaN
            uint32_t payload = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
            return static_cast<uint16_t>(sign | payload);
        }
        if (magnitude < 0x38800000u) {  // subnormal or zero: let the float adder round
            float shifted = std::bit_cast<float>(magnitude) + 0.5f;
            return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
        }
        uint32_t odd = (magnitude >> 13) & 1u;
        uint32_t rounded = magnitude + 0xc8000fffu + odd;  // rebias the exponent and round
        return static_cast<uint16_t>(sign | (rounded >> 13));
    }
    RL_HD static float to_float(uint16_t h) {
        uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
        uint32_t magnitude = static_cast<uint32_t>(h & 0x7fffu) << 13;
        uint32_t exponent = magnitude & 0x0f800000u;
        magnitude += 0x38000000u;
        if (exponent == 0x0f800000u) {
            magnitude += 0x38000000u;  // infinity, NaN
        } else if (exponent == 0) {  // subnormal
            magnitude += 0x00800000u;
            magnitude =
                std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) - std::bit_cast<float>(0x38800000u));
        }
        return std::bit_cast<float>(sign | magnitude);
    }
};

struct BFloat16 {
    uint16_t bits;

    BFloat16() = default;
    RL_HD explicit BFloat16(float value) : bits(from_float(value)) {}
    RL_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

    RL_HD static uint16_t from_float(float value) {
        uint32_t x = std::bit_cast<uint32_t>(value);
        uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
        return (x & 0x7fffffffu) > 0x7f800000u ? uint16_t{0x7fc0} : static_cast<uint16_t>(rounded);
    }
};

}  // namespace rushlight
