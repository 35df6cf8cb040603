// Products of sparse matrices, which are given by the rows, columns and values of their elements. An index out of range
// raises an error when the host next waits (cuda/alarm.h).
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"
#include "cuda/sorting.h"
#include "ops/functors/searching.h"

namespace rushlight::cuda {
namespace {

/// Writes the row of each element of the matrix. For an element that is out of range, writes the number of rows.
struct RowKeys {
    uint64_t* keys;
    const int64_t *row, *column;
    int64_t rows, columns;
    Alarm alarm;
    __device__ void operator()(int64_t k) const {
        const bool good = row[k] >= 0 && row[k] < rows && column[k] >= 0 && column[k] < columns;
        if (!good) alarm.raise();
        keys[k] = static_cast<uint64_t>(good ? row[k] : rows);
    }
};

/// Computes an element of the product. The terms are added in the order of the sparse matrix's elements.
template <class T>
struct SumRow {
    using C = Computed<T>;
    T* out;
    const T *values, *dense;
    const int64_t* column;
    Sorted sorted;
    int64_t count, width;
    __device__ void operator()(int64_t i) const {
        const auto row = static_cast<uint64_t>(i / width);
        C sum = 0;
        for (int64_t k = functors::first_position(count, [&](int64_t p) { return sorted.keys[p] < row; });
             k < count && sorted.keys[k] == row; ++k) {
            const int64_t at = sorted.numbers[k];
            sum += static_cast<C>(values[at]) * static_cast<C>(dense[column[at] * width + i % width]);
        }
        out[i] = static_cast<T>(sum);
    }
};

struct SparseProduct {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &row = args.in(0), &table = args.in(3);
        queue_of(args);
        const int64_t count = row.numel, rows = args.params[0].as_int();
        const auto *at = dense<int64_t>(args.context, row),
                   *column = dense<int64_t>(args.context, args.in(1));
        auto* keys = scratch<uint64_t>(args.context, count);
        queue_for_each(args, count, RowKeys{keys, at, column, rows, table.sizes[0], alarm_of(args.context)});
        if (out.numel == 0) return;
        if (count == 0) return queue_zeros(out, args.context);
        const Sorted sorted = queue_sort(args.context, keys, nullptr, count, bits_below(rows + 1));
        const DenseOut<T> to(args.context, out);
        queue_for_each(args, out.numel,
                       SumRow<T>{to.data(), dense<T>(args.context, args.in(2)), dense<T>(args.context, table),
                                 column, sorted, count, out.sizes[1]});
        to.finish();
    }
};

/// Computes the inner products. Several threads together compute each inner product.
template <class T>
__global__ void __launch_bounds__(kThreads)
    multiply_rows(const Rows s, T* out, const int64_t* row, const int64_t* column, const T* a, const T* b,
                  int64_t a_rows, int64_t b_rows, const Alarm alarm) {
    using C = Computed<T>;
    __shared__ Values<C> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t k = group * at_once + threadIdx.x / s.lanes;
        C sum = 0;
        if (k < s.count) {
            const T *x = a + alarm.checked(row[k], a_rows) * s.size,
                    *y = b + alarm.checked(column[k], b_rows) * s.size;
            for (int64_t i = lane; i < s.size; i += s.lanes)
                sum += static_cast<C>(x[i]) * static_cast<C>(y[i]);
        }
        sum = over_lanes(room.x, lane, s.lanes, sum, Plus());
        if (k < s.count && lane == 0) out[k] = static_cast<T>(sum);
    }
}

struct SampledProducts {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &a = args.in(2), &b = args.in(3);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        if (a.sizes[0] == 0 || b.sizes[0] == 0)
            fail(BackendStatus::Index, "an index is out of range for a matrix of 0 rows");
        const Rows rows(out.numel, a.sizes[1], 1);
        const DenseOut<T> to(args.context, out);
        launch(&multiply_rows<T>, rows.grid(), stream, rows, to.data(),
               dense<int64_t>(args.context, args.in(0)), dense<int64_t>(args.context, args.in(1)),
               dense<T>(args.context, a), dense<T>(args.context, b), a.sizes[0], b.sizes[0],
               alarm_of(args.context));
        to.finish();
    }
};

}  // namespace

BackendStatus sparse_mm(const KernelArgs* args) {
    return by_floating_dtype<SparseProduct>(args, args->out(0).dtype);
}
BackendStatus sampled_products(const KernelArgs* args) {
    return by_floating_dtype<SampledProducts>(args, args->out(0).dtype);
}

}  // namespace rushlight::cuda
