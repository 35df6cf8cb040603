// Positions in sorted sequences.
#pragma once

#include <cstdint>

#include "rushlight/export.h"

namespace rushlight::functors {
namespace {

/// The first of `n` positions at which `stays` fails, which holds in front of it and nowhere else. Halves are chosen by
/// arithmetic: a jump would be guessed wrong every other time.
template <class Stays>
RL_HD inline int64_t first_position(int64_t n, Stays stays) {
    if (n == 0) return 0;
    int64_t begin = 0;
    while (n > 1) {
        const int64_t half = n / 2;
        begin += half * static_cast<int64_t>(stays(begin + half - 1));
        n -= half;
    }
    return begin + static_cast<int64_t>(stays(begin));
}

/// Whether a value goes behind an element, of equal ones with `right`; written so that a NaN goes behind everything.
template <class C>
RL_HD inline bool goes_behind(C value, C element, bool right) {
    return right ? !(element > value) : !(element >= value);
}

}  // namespace
}  // namespace rushlight::functors
