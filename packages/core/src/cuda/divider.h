// Division by a number that is fixed before a kernel starts, as a multiplication (T. Granlund and P. L. Montgomery,
// "Division by invariant integers using multiplication", PLDI '94).
#pragma once

#include <cstdint>

#include "rushlight/export.h"

namespace rushlight::cuda {

/// Divides numbers from 0 to 2^31 - 1.
struct Divider {
    uint32_t divisor = 1, magic = 1, shift = 0;

    Divider() = default;
    explicit Divider(uint32_t d) : divisor(d) {
        while (shift < 32 && (uint64_t{1} << shift) < d) ++shift;
        magic = static_cast<uint32_t>((((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d) + 1);
    }
    RL_HD uint32_t divide(uint32_t n) const {
        const auto high = static_cast<uint32_t>(static_cast<uint64_t>(n) * magic >> 32);
        return (high + n) >> shift;
    }
};

}  // namespace rushlight::cuda
