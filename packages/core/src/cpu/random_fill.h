// Random values in bulk: the definitions of Note [Random values] in rushlight/philox.h, at the speed of
// vector code.
#pragma once

#include <cstdint>

#include "cpu/capability.h"
#include "rushlight/philox.h"

namespace rushlight::cpu {

// Each writes values 0 .. n-1 of the call `key`, contiguous, on several threads when there are many.

/// Uniform in [0, 1).
void fill_uniform(PhiloxKey key, float* out, int64_t n);
void fill_uniform(PhiloxKey key, double* out, int64_t n);
/// Standard normal.
void fill_normal(PhiloxKey key, float* out, int64_t n);
void fill_normal(PhiloxKey key, double* out, int64_t n);
/// Uniform in {low, ..., low + range - 1}; range 0 stands for 2^64. Wraps.
void fill_integers(PhiloxKey key, int64_t low, uint64_t range, int64_t* out, int64_t n);
/// 1 with probability p, else 0: whether the uniform float of the same index is below p.
void fill_bernoulli(PhiloxKey key, float p, uint8_t* out, int64_t n);

/// 1 where the element is kept, else 0: Note [Random masks].
void fill_mask(PhiloxKey key, uint64_t threshold, uint8_t* out, int64_t n);

/// The same for values begin .. begin+n-1, on this thread: for kernels that use the values at once.
struct RandomKernels {
    void (*uniform_float)(PhiloxKey key, int64_t begin, int64_t n, float* out);
    void (*uniform_double)(PhiloxKey key, int64_t begin, int64_t n, double* out);
    void (*normal_float)(PhiloxKey key, int64_t begin, int64_t n, float* out);
    void (*normal_double)(PhiloxKey key, int64_t begin, int64_t n, double* out);
    void (*integers)(PhiloxKey key, int64_t begin, int64_t n, int64_t low, uint64_t range, int64_t* out);
    void (*bernoulli)(PhiloxKey key, int64_t begin, int64_t n, float p, uint8_t* out);
    void (*mask)(PhiloxKey key, int64_t begin, int64_t n, uint64_t threshold, uint8_t* out);
    // `scale` times the elements that are kept, else 0.
    void (*apply_mask_float)(const uint8_t* mask, const float* in, float scale, float* out, int64_t n);
    void (*apply_mask_double)(const uint8_t* mask, const double* in, double scale, double* out, int64_t n);
};
RUSHLIGHT_KERNEL_TABLE(RandomKernels, random_kernels)

}  // namespace rushlight::cpu
