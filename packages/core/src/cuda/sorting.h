// Prefix sums and stable sorting on the device, which other kernels are made of. Both give the same result in every run.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// Replaces each of `n` counts by the sum of those before it, and writes the sum of all to `total`, if that is not null.
void queue_offsets(KernelContext* context, int64_t* counts, int64_t n, int64_t* total = nullptr);

/// Keys in rising order, each with the number of its position before; in scratch memory.
struct Sorted {
    uint64_t* keys;
    int64_t* numbers;
};
/// Sorts `n` keys, which are overwritten, by their lowest `bits`; equal ones keep their order. `numbers` are what the keys
/// carry: their positions where it is null, else memory that is overwritten.
Sorted queue_sort(KernelContext* context, uint64_t* keys, int64_t* numbers, int64_t n, int bits);

/// How many bits numbers below `count` have.
inline int bits_below(int64_t count) {
    int bits = 0;
    while (bits < 63 && (int64_t{1} << bits) < count) ++bits;
    return bits;
}

}  // namespace rushlight::cuda
