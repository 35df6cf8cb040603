// The loops behind searching.h.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// A loop for each dtype that has an order, else null.
struct SearchingKernels {
    // The positions of n values among `count` sorted ones, in front of equal ones or behind them; NaN goes to the end.
    // `order` gives the positions of the sorted ones; null if they are in place.
    using Position = void (*)(int64_t* positions, const void* values, int64_t n, const void* sorted,
                              const int64_t* order, int64_t count, bool right);
    Position position[kNumDTypes];
    // Whether each of n values is among `count` sorted ones; a NaN is nowhere.
    using IsIn = void (*)(bool* found, const void* values, int64_t n, const void* sorted, int64_t count,
                          bool invert);
    IsIn is_in[kNumDTypes];
    // Groups of equal neighbours: the position in the row of the first of each, and the group of every element if requested;
    // how many they are.
    using Group = int64_t (*)(int64_t* starts, int64_t* group, const void* sorted, int64_t n);
    Group group[kNumDTypes];
    // -1, 0 or 1 as the first of two rows of `width` elements comes before the other, equals it, or comes behind. NaN is
    // largest; `equal` is false where there is one.
    using Compare = int (*)(const void* a, const void* b, int64_t width, bool* equal);
    Compare compare[kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(SearchingKernels, searching_kernels)

}  // namespace rushlight::cpu
