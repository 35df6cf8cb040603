// The loops behind embedding.h. Indices are checked already.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

struct EmbeddingKernels {
    // table[indices[i]] += rows[i], times scale[indices[i]] where `scale` is not null; the index `skip` adds
    // nothing.
    void (*add_rows_f32)(float* table, int64_t width, const float* rows, const int64_t* indices,
                         int64_t count, int64_t skip, const float* scale);
    void (*add_rows_f64)(double* table, int64_t width, const double* rows, const int64_t* indices,
                         int64_t count, int64_t skip, const double* scale);
    // Row b of `out` is the sum of table[indices[i]], rows `pitch` apart, over i from starts[b] to starts[b + 1]; the index `skip`
    // adds nothing. The sums are divided.
    void (*sum_rows_f32)(float* out, const float* table, int64_t pitch, int64_t width, const int64_t* indices,
                         const int64_t* starts, int64_t count, double divisor, int64_t skip);
    void (*sum_rows_f64)(double* out, const double* table, int64_t pitch, int64_t width,
                         const int64_t* indices, const int64_t* starts, int64_t count, double divisor,
                         int64_t skip);
};

RUSHLIGHT_KERNEL_TABLE(EmbeddingKernels, embedding_kernels)

}  // namespace rushlight::cpu
