// Loops over elements that do not lie in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/capability.h"
#include "cpu/loop_table.h"

namespace rushlight::cpu {

struct PlaceKernels {
    // Whether all are in [0, size).
    bool (*within)(const int64_t* index, int64_t n, int64_t size);
    // out[j] = in[j * step + index[j] * stride], elements of 1, 2, 4, 8 or 16 bytes.
    void (*read)(void* out, const void* in, size_t itemsize, const int64_t* index, int64_t n, int64_t stride,
                 int64_t step);
    // to[i] += from[i].
    void (*add_f32)(float* to, const float* from, int64_t n);
    void (*add_f64)(double* to, const double* from, int64_t n);
    // The loop that copies adjacent elements of `itemsize` bytes, read from behind.
    LoopFn (*copy_backwards)(size_t itemsize);
};

RUSHLIGHT_KERNEL_TABLE(PlaceKernels, place_kernels)

}  // namespace rushlight::cpu
