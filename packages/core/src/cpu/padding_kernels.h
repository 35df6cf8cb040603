// The loops behind padding.h, on dense tensors.
#pragma once

#include <cstddef>

#include "cpu/capability.h"
#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// A dimension, and for each padded position the input position that it reads.
struct PaddedDim {
    int64_t size, padded, before;
    const int64_t* from;
};

/// Planes of padded dimensions: `planes` are the dimensions before the first padded one, `inner` those after the last.
struct PaddedPlanes {
    int64_t planes = 1, inner = 1;
    int ndim = 0;
    PaddedDim dims[kMaxDims];
    int64_t small = 1, large = 1;  // elements of a plane, without and with its padding
};

struct PaddingKernels {
    // Planes begin .. end-1 of `out` from those of `in`.
    void (*extend)(const PaddedPlanes&, void* out, const void* in, size_t itemsize, int64_t begin,
                   int64_t end);
    // Planes of `out`, the smaller ones, as sums of those of `in`.
    using Fold = void (*)(const PaddedPlanes&, void* out, const void* in, int64_t begin, int64_t end);
    Fold fold[kNumDTypes];  // null for bools
};

RUSHLIGHT_KERNEL_TABLE(PaddingKernels, padding_kernels)

}  // namespace rushlight::cpu
