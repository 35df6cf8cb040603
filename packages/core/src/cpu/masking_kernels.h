// Kernels of the operators in masking.h. A selection of elements is stored as bits: bit i % 64 of word i / 64
// belongs to element i, and the bits after the last element are zero.
#pragma once

#include <cstddef>

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

struct MaskingKernels {
    // Sets the bits of the elements that are not zero (NaN is not zero), and returns their number.
    int64_t (*bits)(uint64_t* words, const void* in, int64_t n, DType dtype);
    // Copies the selected ones of `n` elements to contiguous memory.
    void (*compress)(void* out, const void* in, const uint64_t* words, int64_t n, size_t itemsize);
    // Copies contiguous elements to the selected ones of `n` elements.
    void (*expand)(void* out, const void* in, const uint64_t* words, int64_t n, size_t itemsize);
    // Writes the coordinates of the selected ones of elements first .. first+n-1 of a shape: a row of `ndim`
    // numbers for each, with the strides `row` and `column`.
    void (*coordinates)(int64_t* out, int64_t row, int64_t column, const uint64_t* words, int64_t first,
                        int64_t n, const int64_t* sizes, int ndim);
};

RUSHLIGHT_KERNEL_TABLE(MaskingKernels, masking_kernels)

}  // namespace rushlight::cpu
