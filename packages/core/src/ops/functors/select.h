// Selection by conditions in loops without branches.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rushlight/export.h"

namespace rushlight::functors {
namespace {

/// Returns a if the condition is true, and otherwise b. The selection uses operations on the bits, because compilers
/// translate `condition ? a : b` to a branch, which processors mispredict if the condition is random.
template <class T>
RL_HD inline T select(bool condition, T a, T b) {
    if constexpr (sizeof(T) <= 8) {
        using Bits =
            std::conditional_t<sizeof(T) == 1, uint8_t,
                               std::conditional_t<sizeof(T) == 2, uint16_t,
                                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
        const auto mask = static_cast<Bits>(-static_cast<Bits>(__builtin_bit_cast(uint8_t, condition)));
        const Bits x = __builtin_bit_cast(Bits, a), y = __builtin_bit_cast(Bits, b);
        return __builtin_bit_cast(T, static_cast<Bits>(y ^ ((x ^ y) & mask)));
    } else {
        return condition ? a : b;
    }
}

/// Returns `a`, limited to the range from `low` to `high`. The limits must not be NaN. Returns `high` if `low` is above
/// `high`. If `a` is NaN, both comparisons are false and `a` is returned. Compilers translate the comparisons to the
/// processor's instructions for the larger and the smaller of two numbers.
template <class T>
RL_HD inline T between(T a, T low, T high) {
    const T above = low > a ? low : a;
    return high < above ? high : above;
}

}  // namespace
}  // namespace rushlight::functors
