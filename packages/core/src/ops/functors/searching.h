// Positions in sorted sequences and in equal parts of a range.
#pragma once

#include <cstdint>
#include <limits>

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

/// Returns the one of `parts` equal parts of [low, high] that contains `value`, which must be in that range. The last part
/// includes `high`.
template <class C>
RL_HD inline int64_t equal_part(C value, C low, C high, int64_t parts) {
    const C count = static_cast<C>(parts);
    // A large range is scaled down, so that the product below does not overflow.
    const C scale = (high - low) * count <= std::numeric_limits<C>::max() ? C(1) : C(0.5) / count;
    const C position = (value * scale - low * scale) * count / (high * scale - low * scale);
    return position < count ? static_cast<int64_t>(position) : parts - 1;
}

}  // namespace
}  // namespace rushlight::functors
