// Kernels of the operators in embedding.h. The caller has checked the indices.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

struct EmbeddingKernels {
    // Adds rows[i] to table[indices[i]], multiplied by scale[indices[i]] if `scale` is not null. Rows with the
    // index `skip` are not added.
    void (*add_rows_f32)(float* table, int64_t width, const float* rows, const int64_t* indices,
                         int64_t count, int64_t skip, const float* scale);
    void (*add_rows_f64)(double* table, int64_t width, const double* rows, const int64_t* indices,
                         int64_t count, int64_t skip, const double* scale);
    // Row b of `out` is the sum of table[indices[i]] over i from starts[b] to starts[b + 1] - 1, divided by
    // `divisor`. The rows of the table are `pitch` apart, and the index `skip` is left out.
    void (*sum_rows_f32)(float* out, const float* table, int64_t pitch, int64_t width, const int64_t* indices,
                         const int64_t* starts, int64_t count, double divisor, int64_t skip);
    void (*sum_rows_f64)(double* out, const double* table, int64_t pitch, int64_t width,
                         const int64_t* indices, const int64_t* starts, int64_t count, double divisor,
                         int64_t skip);
};

RUSHLIGHT_KERNEL_TABLE(EmbeddingKernels, embedding_kernels)

}  // namespace rushlight::cpu
