// Positions in sorted sequences.
#pragma once

#include <cstdint>

#include "rushlight/export.h"

namespace rushlight::functors {
namespace {

/// Returns the first of `n` positions for which `stays` is false, or `n` if there is none, by binary search. `stays`
/// must be true for all positions before the result and false for all others. The halves are selected by arithmetic,
/// because a branch would be mispredicted half of the time.
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

/// Whether a value is inserted after an element. If `right` is true, the value is also inserted after equal elements.
/// The comparison is negated so that a NaN is inserted after every element.
template <class C>
RL_HD inline bool goes_behind(C value, C element, bool right) {
    return right ? !(element > value) : !(element >= value);
}

}  // namespace
}  // namespace rushlight::functors
