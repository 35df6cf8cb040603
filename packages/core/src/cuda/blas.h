// Matrix products by a library, which tests can replace.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "rushlight/dtype.h"

namespace rushlight::cuda {

/// A matrix, or a batch of matrices. Strides are in elements. One of the strides `row` and `column` is 1, and the other is
/// at least the length of a column or row.
struct Matrix {
    const void* data;
    int64_t batch, row, column;
};

/// out = alpha * a b + beta * out (+ bias, which has n elements and is added to each row). a is (m, k), b is (k, n). Sizes
/// are not zero.
struct Product {
    DType dtype;   // Float16, BFloat16, Float32, Float64
    DType result;  // the dtype of `out`: equal to `dtype`, or Float32 if `dtype` is a half type
    int64_t count, m, n, k;
    Matrix a, b, out;  // `out` is row-major
    double alpha, beta;
    const void* bias;  // or null; requires beta 0
    bool tf32;  // float32 products may be computed with 10 bits of mantissa
};

/// Queues a product. Raises Failure.
void multiply(int32_t device, cudaStream_t stream, void* workspace, size_t workspace_bytes,
              const Product& product);

inline constexpr size_t kWorkspaceBytes = size_t{32} << 20;

}  // namespace rushlight::cuda
