// Kernels of the operators in padding.h, on contiguous tensors.
#pragma once

#include <cstddef>

#include "cpu/capability.h"
#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// A padded dimension. `from` holds, for each position of the padded dimension, the position of the input that is
/// copied to it.
struct PaddedDim {
    int64_t size, padded, before;
    const int64_t* from;
};

/// The shape (planes, padded dimensions..., inner). `planes` is the product of the sizes before the first padded
/// dimension, and `inner` is the product of the sizes after the last padded dimension.
struct PaddedPlanes {
    int64_t planes = 1, inner = 1;
    int ndim = 0;
    PaddedDim dims[kMaxDims];
    int64_t small = 1, large = 1;  // elements of a plane, without and with its padding
};

struct PaddingKernels {
    // Copies planes begin .. end-1 of `in` to `out` and pads them.
    void (*extend)(const PaddedPlanes&, void* out, const void* in, size_t itemsize, int64_t begin,
                   int64_t end);
    // Computes planes begin .. end-1 of `out`, which is not padded: each element is the sum of its copies in `in`.
    using Fold = void (*)(const PaddedPlanes&, void* out, const void* in, int64_t begin, int64_t end);
    Fold fold[kNumDTypes];  // null for bools
};

RUSHLIGHT_KERNEL_TABLE(PaddingKernels, padding_kernels)

}  // namespace rushlight::cpu
