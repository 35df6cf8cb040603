// Vectorised generation of many random values, which Note [Random values] in rushlight/philox.h defines.
#pragma once

#include <cstdint>

#include "cpu/capability.h"
#include "rushlight/philox.h"

namespace rushlight::cpu {

// Each function writes values 0 .. n-1 of the stream `key` to contiguous memory. A large number of values is divided
// among threads.

/// Writes values that are uniform in [0, 1).
void fill_uniform(PhiloxKey key, float* out, int64_t n);
void fill_uniform(PhiloxKey key, double* out, int64_t n);
/// Writes values with the standard normal distribution.
void fill_normal(PhiloxKey key, float* out, int64_t n);
void fill_normal(PhiloxKey key, double* out, int64_t n);
/// Writes integers that are uniform in {low, ..., low + range - 1}. A range of 0 stands for 2^64. Sums wrap around.
void fill_integers(PhiloxKey key, int64_t low, uint64_t range, int64_t* out, int64_t n);
/// Writes 1 with probability p, else 0. Value i is 1 if the i-th uniform float is below p.
void fill_bernoulli(PhiloxKey key, float p, uint8_t* out, int64_t n);

/// Writes 1 for each element that is kept and 0 for each other element: Note [Random masks] in rushlight/philox.h.
void fill_mask(PhiloxKey key, uint64_t threshold, uint8_t* out, int64_t n);

/// Like the functions above, but these functions write only the values begin .. begin+n-1 of the stream and use only
/// the calling thread. They are for kernels that use the values immediately.
struct RandomKernels {
    void (*uniform_float)(PhiloxKey key, int64_t begin, int64_t n, float* out);
    void (*uniform_double)(PhiloxKey key, int64_t begin, int64_t n, double* out);
    void (*normal_float)(PhiloxKey key, int64_t begin, int64_t n, float* out);
    void (*normal_double)(PhiloxKey key, int64_t begin, int64_t n, double* out);
    void (*integers)(PhiloxKey key, int64_t begin, int64_t n, int64_t low, uint64_t range, int64_t* out);
    void (*bernoulli)(PhiloxKey key, int64_t begin, int64_t n, float p, uint8_t* out);
    void (*mask)(PhiloxKey key, int64_t begin, int64_t n, uint64_t threshold, uint8_t* out);
    // Computes `scale` times the element where the mask is 1, else 0.
    void (*apply_mask_float)(const uint8_t* mask, const float* in, float scale, float* out, int64_t n);
    void (*apply_mask_double)(const uint8_t* mask, const double* in, double scale, double* out, int64_t n);
};
RUSHLIGHT_KERNEL_TABLE(RandomKernels, random_kernels)

}  // namespace rushlight::cpu
