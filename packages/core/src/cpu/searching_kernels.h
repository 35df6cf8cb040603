// Kernels of the operators in searching.h.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Kernels by dtype. The entry of a dtype without an order is null.
struct SearchingKernels {
    // Computes the positions at which n values would be inserted into `count` sorted elements: in front of equal
    // elements or, if `right`, behind them. NaN is inserted at the end. `order` gives the positions of the sorted
    // elements in `sorted`; it is null if they are stored in order.
    using Position = void (*)(int64_t* positions, const void* values, int64_t n, const void* sorted,
                              const int64_t* order, int64_t count, bool right);
    Position position[kNumDTypes];
    // Writes whether each of n values occurs among `count` sorted elements. NaN never occurs.
    using IsIn = void (*)(bool* found, const void* values, int64_t n, const void* sorted, int64_t count,
                          bool invert);
    IsIn is_in[kNumDTypes];
    // Finds groups of equal neighbours. Writes the position of each group's first element and, if `group` is not
    // null, the group of every element. Returns the number of groups.
    using Group = int64_t (*)(int64_t* starts, int64_t* group, const void* sorted, int64_t n);
    Group group[kNumDTypes];
    // Returns -1, 0 or 1 if row `a` of `width` elements comes before row `b`, has the same place in the order, or
    // comes after it. NaN is the largest element. Writes to `equal` whether the rows are equal; rows with NaN never
    // are.
    using Compare = int (*)(const void* a, const void* b, int64_t width, bool* equal);
    Compare compare[kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(SearchingKernels, searching_kernels)

}  // namespace rushlight::cpu
