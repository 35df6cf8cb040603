// Prefix sums and stable sorting on the device, as parts of other kernels. Both give the same result in every run.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// Replaces each of `n` counts by the sum of the counts before it, and writes the total to `total` unless that is null.
void queue_offsets(KernelContext* context, int64_t* counts, int64_t n, int64_t* total = nullptr);

/// Keys in ascending order, and the number of each key. Both arrays are in scratch memory.
struct Sorted {
    uint64_t* keys;
    int64_t* numbers;
};
/// Sorts `n` keys by their lowest `bits` bits. Equal keys keep their order. Each of the `numbers` is moved with its
/// key. If `numbers` is null, the numbers are the original positions of the keys. Both arrays are overwritten.
Sorted queue_sort(KernelContext* context, uint64_t* keys, int64_t* numbers, int64_t n, int bits);

/// Returns how many bits the integers from 0 to `count` - 1 need.
inline int bits_below(int64_t count) {
    int bits = 0;
    while (bits < 63 && (int64_t{1} << bits) < count) ++bits;
    return bits;
}

}  // namespace rushlight::cuda
