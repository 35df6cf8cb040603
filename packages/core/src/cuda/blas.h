// Matrix products by a library, which tests can replace.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "rushlight/dtype.h"

namespace rushlight::cuda {

/// A matrix, or a batch of matrices. Strides are in elements. Either `column` is 1 and `row` is at least the length of
/// a row, or `row` is 1 and `column` is at least the length of a column.
struct Matrix {
    const void* data;
    int64_t batch, row, column;
};

/// Describes the computation out = alpha * a @ b + beta * out, where a is (m, k), b is (k, n) and out is (m, n). If
/// `bias` is not null, its n elements are added to each row of the result. Sizes are not zero.
struct Product {
    DType dtype;   // Float16, BFloat16, Float32, Float64
    DType result;  // the dtype of `out`: equal to `dtype`, or Float32 if `dtype` is a half type
    int64_t count, m, n, k;
    Matrix a, b, out;  // `out` is row-major
    double alpha, beta;
    const void* bias;  // or null; requires beta 0
    bool tf32;  // float32 products may be computed with 10 bits of mantissa
    bool half_sums = false;  // a product of dtype and result Float16 adds in float16 instead of float32
    bool splits = true;  // several blocks may compute parts of a sum
};

/// Enqueues a product on the stream. Raises Failure.
void multiply(int32_t device, cudaStream_t stream, void* workspace, size_t workspace_bytes,
              const Product& product);

inline constexpr size_t kWorkspaceBytes = size_t{32} << 20;

}  // namespace rushlight::cuda
