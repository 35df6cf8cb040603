// The matrix product on raw pointers, below the operators of matmul.h.
#pragma once

#include <cstdint>
#include <limits>

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// c = alpha a b + beta init, where a is (m, k), b is (k, n), c is (m, n). Strides count elements; columns of
/// c are adjacent. Without `init` (null) c is only written. `init` may be c itself, or broadcast by zero
/// strides.
template <class T>
struct Gemm {
    int64_t m, n, k;
    const T* a;
    int64_t a_row, a_col;
    const T* b;
    int64_t b_row, b_col;
    T* c;
    int64_t c_row;
    T alpha;
    T beta;
    const T* init;
    int64_t init_row;
    int64_t init_col;  // 0 or 1
    // Note [Pairs of bfloat16]
    // An element of a and b stands for two bfloat16 numbers, neighbours along k, in the bits of one float; `k` counts such
    // pairs. One instruction of AVX512-BF16 multiplies and adds both. Code that copies elements copies pairs as well.
    bool pairs = false;
    // Note [Runs]
    // The columns of b and c may come in runs of `column_run`, as the pixels of a batch of images do: the first elements of two
    // runs lie b_run and c_run apart. `first_column` is where in its run the product begins. Likewise steps along k may come in
    // runs of `step_run`, a_step_run and b_step_run apart. Packing, or the loop around the inner kernels, handles runs; the
    // inner kernels themselves get contiguous parts. With runs of columns b_col is 1 and `init` is the same for all columns.
    int64_t column_run = kOneRun, first_column = 0, b_run = 0, c_run = 0;
    int64_t step_run = kOneRun, a_step_run = 0, b_step_run = 0;

    static constexpr int64_t kOneRun = std::numeric_limits<int64_t>::max();
    int64_t b_column(int64_t j) const {
        return (first_column + j) / column_run * b_run + (first_column + j) % column_run * b_col;
    }
    int64_t c_column(int64_t j) const {
        return (first_column + j) / column_run * c_run + (first_column + j) % column_run;
    }
    int64_t a_step(int64_t k) const { return k / step_run * a_step_run + k % step_run * a_col; }
    int64_t b_step(int64_t k) const { return k / step_run * b_step_run + k % step_run * b_row; }
};

/// Calls f(first, count) for the parts of [begin, begin + count) that lie in one run each.
template <class F>
void for_runs(int64_t begin, int64_t count, int64_t run, F&& f) {
    while (count > 0) {
        const int64_t left = run - begin % run, n = count < left ? count : left;
        f(begin, n);
        begin += n, count -= n;
    }
}

/// The same of integers of any size, modulo 2^bits, for a batch; c is row-major.
struct IntegerGemm {
    int64_t count, m, n, k;
    const void* a;
    int64_t a_batch, a_row, a_col;
    const void* b;
    int64_t b_batch, b_row, b_col;
    void* c;
    int64_t alpha, beta;
    const void* init;
    int64_t init_batch, init_row, init_col;
};

struct GemmKernels {
    // Uses all threads of the caller, and scratch memory for large products only.
    void (*gemm_f32)(KernelContext&, const Gemm<float>&);
    void (*gemm_f64)(KernelContext&, const Gemm<double>&);
    // On the caller's thread alone, for kernels that divide their own work. `scratch` holds scratch_*(g)
    // elements, which are enough for any smaller product too.
    int64_t (*scratch_f32)(const Gemm<float>&);
    int64_t (*scratch_f64)(const Gemm<double>&);
    void (*serial_f32)(const Gemm<float>&, float* scratch);
    void (*serial_f64)(const Gemm<double>&, double* scratch);
    // The same with b that was packed before, for products that share b and differ in a: `pack_*` copies b into
    // packed_size_*(g) elements, and `serial_packed_*` reads those and never b. Both need g.n and g.k to be the same.
    int64_t (*packed_size_f32)(const Gemm<float>&);
    int64_t (*packed_size_f64)(const Gemm<double>&);
    void (*pack_f32)(const Gemm<float>&, float* packed);
    void (*pack_f64)(const Gemm<double>&, double* packed);
    void (*serial_packed_f32)(const Gemm<float>&, const float* packed, float* scratch);
    void (*serial_packed_f64)(const Gemm<double>&, const double* packed, double* scratch);
    // `count` products whose operands lie at the given distances.
    void (*batched_f32)(KernelContext&, const Gemm<float>&, int64_t count, int64_t a, int64_t b, int64_t c,
                        int64_t init);
    void (*batched_f64)(KernelContext&, const Gemm<double>&, int64_t count, int64_t a, int64_t b, int64_t c,
                        int64_t init);
    float (*dot_f32)(int64_t n, const float* x, int64_t x_stride, const float* y, int64_t y_stride);
    double (*dot_f64)(int64_t n, const double* x, int64_t x_stride, const double* y, int64_t y_stride);
    void (*integer)(const IntegerGemm&, DType);
    // Whether this processor multiplies pairs of bfloat16, and pairs made of two rows of n numbers.
    bool (*has_pairs)();
    void (*pair_up)(float* out, const uint16_t* even, const uint16_t* odd, int64_t n);
};

RUSHLIGHT_KERNEL_TABLE(GemmKernels, gemm_kernels)

}  // namespace rushlight::cpu
