// Kernels of the functions in sparse.h. The caller has checked the indices.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

struct SparseKernels {
    // Row r of `out` is the sum of values[k] * dense[col[k]] over k = order[i] for i from starts[r] to starts[r +
    // 1] - 1, or over k = i if `order` is null. The rows of `dense` are `pitch` elements apart.
    void (*rows_f32)(float* out, const int64_t* starts, const int64_t* order, const int64_t* col,
                     const float* values, const float* dense, int64_t pitch, int64_t width, int64_t rows);
    void (*rows_f64)(double* out, const int64_t* starts, const int64_t* order, const int64_t* col,
                     const double* values, const double* dense, int64_t pitch, int64_t width, int64_t rows);
    // out[k] is the inner product of rows a[row[k]] and b[col[k]].
    void (*products_f32)(float* out, const int64_t* row, const int64_t* col, const float* a, const float* b,
                         int64_t width, int64_t count);
    void (*products_f64)(double* out, const int64_t* row, const int64_t* col, const double* a,
                         const double* b, int64_t width, int64_t count);
};

RUSHLIGHT_KERNEL_TABLE(SparseKernels, sparse_kernels)

}  // namespace rushlight::cpu
