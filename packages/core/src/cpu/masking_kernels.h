// The loops behind masking.h. What is chosen is held in bits: bit i % 64 of word i / 64 for element i, and zeros after the
// last element.
#pragma once

#include <cstddef>

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

struct MaskingKernels {
    // The bits of elements that are not zero, NaN among them; returns how many they are.
    int64_t (*bits)(uint64_t* words, const void* in, int64_t n, DType dtype);
    // The chosen elements of `n`, side by side.
    void (*compress)(void* out, const void* in, const uint64_t* words, int64_t n, size_t itemsize);
    // And back: the chosen ones of `n` elements are written.
    void (*expand)(void* out, const void* in, const uint64_t* words, int64_t n, size_t itemsize);
    // The coordinates of the chosen ones of elements first .. first+n-1 of a shape: a row of `ndim` numbers for each, of the
    // strides `row` and `column`.
    void (*coordinates)(int64_t* out, int64_t row, int64_t column, const uint64_t* words, int64_t first,
                        int64_t n, const int64_t* sizes, int ndim);
};

RUSHLIGHT_KERNEL_TABLE(MaskingKernels, masking_kernels)

}  // namespace rushlight::cpu
