// The matrix product on raw pointers, which the operators of matmul.h use.
#pragma once

#include <cstdint>
#include <limits>

#include "cpu/capability.h"
#include "rushlight/half.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Describes the computation c = alpha * a @ b + beta * init, where a is (m, k), b is (k, n) and c is (m, n). Strides
/// are in elements, and the elements of each row of c are adjacent. If `init` is null, the term beta * init is left
/// out, and c is written without being read. `init` may be c itself, or may be broadcast by strides of 0. The elements
/// of b have the type B.
template <class T, class B = T>
struct Gemm {
    int64_t m, n, k;
    const T* a;
    int64_t a_row, a_col;
    const B* b;
    int64_t b_row, b_col;
    T* c;
    int64_t c_row;
    T alpha;
    T beta;
    const T* init;
    int64_t init_row;
    int64_t init_col;  // 0 or 1
    // Note [Pairs of bfloat16]
    // Each element of a and b holds two bfloat16 numbers, neighbours along k, in the bits of one float, so that
    // code that copies elements can copy pairs unchanged. `k` counts such pairs. One instruction of AVX512-BF16
    // multiplies and adds both numbers of a pair.
    bool pairs = false;
    // Note [Runs]
    // The columns of b and c may be divided into runs of `column_run` contiguous columns, such as the pixels of
    // each image in a batch. The first elements of two successive runs are b_run and c_run apart. The product
    // begins at column `first_column` of its run. Likewise, steps along k may be divided into runs of `step_run`,
    // which are a_step_run and b_step_run apart. The packing functions, or the loop around the inner kernels,
    // handle runs; the inner kernels receive contiguous parts. With runs of columns, b_col is 1 and `init` is the
    // same for all columns.
    int64_t column_run = kOneRun, first_column = 0, b_run = 0, c_run = 0;
    int64_t step_run = kOneRun, a_step_run = 0, b_step_run = 0;
    // Whether c is written by stores that bypass the caches: Note [Streaming stores] in streaming.h.
    bool stream = false;

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

/// Divides the range [begin, begin + count) at the multiples of `run`. Calls f(first, n) for each part, which consists
/// of n numbers from `first` on.
template <class F>
void for_runs(int64_t begin, int64_t count, int64_t run, F&& f) {
    while (count > 0) {
        const int64_t left = run - begin % run, n = count < left ? count : left;
        f(begin, n);
        begin += n, count -= n;
    }
}

/// Describes a batch of the products that Gemm describes, for integers of any width. The results are computed modulo
/// 2^width, where `width` is the number of bits of an element. c is row-major.
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

/// Describes the same computation as Gemm, for bfloat16 matrices. Each element of c is rounded to bfloat16 only once.
struct TileGemm {
    int64_t m, n, k;
    const uint16_t* a;
    int64_t a_row, a_col;
    const uint16_t* b;
    int64_t b_row, b_col;
    uint16_t* c;
    int64_t c_row;
    float alpha, beta;
    const uint16_t* init;
    int64_t init_row, init_col;  // init_col is 0 or 1
    // If not null, the result is written here in float32 instead of to c, and added to what is there if `add` is true.
    // There is no other addend.
    float* wide = nullptr;
    bool add = false;
};

inline constexpr int64_t kFewRows = 8;

struct GemmKernels {
    // Computes a product with all threads of the caller. Only large products need scratch memory.
    void (*gemm_f32)(KernelContext&, Gemm<float>);
    void (*gemm_f64)(KernelContext&, Gemm<double>);
    // `serial_*` computes a product on the caller's thread, for kernels that distribute their work themselves.
    // `scratch` holds scratch_*(g) elements, which is also enough for any smaller product.
    int64_t (*scratch_f32)(const Gemm<float>&);
    int64_t (*scratch_f64)(const Gemm<double>&);
    void (*serial_f32)(const Gemm<float>&, float* scratch);
    void (*serial_f64)(const Gemm<double>&, double* scratch);
    // `serial_packed_*` does the same for a matrix b that was packed before, for products that share b and differ
    // in a. `pack_*` copies b into packed_size_*(g) elements; `serial_packed_*` reads this copy and not b itself.
    // g.n and g.k must be the same in both calls.
    int64_t (*packed_size_f32)(const Gemm<float>&);
    int64_t (*packed_size_f64)(const Gemm<double>&);
    void (*pack_f32)(const Gemm<float>&, float* packed);
    void (*pack_f64)(const Gemm<double>&, double* packed);
    void (*serial_packed_f32)(const Gemm<float>&, const float* packed, float* scratch);
    void (*serial_packed_f64)(const Gemm<double>&, const double* packed, double* scratch);
    // Computes `count` products whose successive operands are `a`, `b`, `c` and `init` elements apart.
    void (*batched_f32)(KernelContext&, const Gemm<float>&, int64_t count, int64_t a, int64_t b, int64_t c,
                        int64_t init);
    void (*batched_f64)(KernelContext&, const Gemm<double>&, int64_t count, int64_t a, int64_t b, int64_t c,
                        int64_t init);
    float (*dot_f32)(int64_t n, const float* x, int64_t x_stride, const float* y, int64_t y_stride);
    double (*dot_f64)(int64_t n, const double* x, int64_t x_stride, const double* y, int64_t y_stride);
    void (*integer)(KernelContext&, const IntegerGemm&, DType);
    // Compute `count` products of up to kFewRows rows with matrices of a half type, which are converted while they are read.
    // The columns of a and either the rows or the columns of b are adjacent.
    void (*few_rows_f16)(const Gemm<float, Half>&, int64_t count, int64_t a, int64_t b, int64_t c,
                         int64_t init);
    void (*few_rows_bf16)(const Gemm<float, BFloat16>&, int64_t count, int64_t a, int64_t b, int64_t c,
                          int64_t init);
    // `has_pairs` returns whether this processor has the instruction that multiplies pairs of bfloat16. `pair_up`
    // combines two rows of n numbers into n pairs.
    bool (*has_pairs)();
    void (*pair_up)(float* out, const uint16_t* even, const uint16_t* odd, int64_t n);
    // `has_tiles` returns whether this process can use the tile registers of AMX: Note [Tiles] in kernels/gemm_tiles.h.
    // `batched_tiles` computes `count` products with all threads, and `serial_tiles` one product on the caller's
    // thread, with scratch_tiles(m, n, k) bytes of scratch memory.
    bool (*has_tiles)();
    int64_t (*scratch_tiles)(int64_t m, int64_t n, int64_t k);
    void (*serial_tiles)(const TileGemm&, void* scratch);
    void (*batched_tiles)(KernelContext&, const TileGemm&, int64_t count, int64_t a, int64_t b, int64_t c,
                          int64_t init);
};

RUSHLIGHT_KERNEL_TABLE(GemmKernels, gemm_kernels)

}  // namespace rushlight::cpu
