#include "cpu/sparse.h"

#include "cpu/contiguous.h"
#include "cpu/positions.h"
#include "cpu/sparse_kernels.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

const int64_t* checked(KernelContext& ctx, const char* what, const View& indices, int64_t size) {
    const int64_t* numbers = contiguous_in(ctx, indices).as<int64_t>();
    if (position_kernels().within(numbers, indices.numel, size)) return numbers;
    for (int64_t i = 0; i < indices.numel; ++i)
        RL_CHECK(numbers[i] >= 0 && numbers[i] < size, throw_index,
                 "sparse matrix: %s index %lld at position %lld is out of range for size %lld", what,
                 static_cast<long long>(numbers[i]), static_cast<long long>(i), static_cast<long long>(size));
    return numbers;
}

struct Rows {
    const int64_t* starts;
    const int64_t* order;  // null if the values are sorted by row
};

// Finds the values of each row. If they are not sorted by row, their order is computed by a counting sort.
Rows by_row(KernelContext& ctx, const int64_t* row, int64_t nnz, int64_t rows) {
    int64_t* starts = scratch<int64_t>(ctx, rows + 1);
    for (int64_t r = 0; r <= rows; ++r) starts[r] = 0;
    bool sorted = true;
    for (int64_t k = 0; k < nnz; ++k) {
        sorted &= k == 0 || row[k - 1] <= row[k];
        ++starts[row[k] + 1];
    }
    for (int64_t r = 0; r < rows; ++r) starts[r + 1] += starts[r];
    if (sorted) return {starts, nullptr};
    int64_t *next = scratch<int64_t>(ctx, rows), *order = scratch<int64_t>(ctx, nnz);
    for (int64_t r = 0; r < rows; ++r) next[r] = starts[r];
    for (int64_t k = 0; k < nnz; ++k) order[next[row[k]]++] = k;
    return {starts, order};
}

}  // namespace

void sparse_mm(KernelContext& ctx, const View& out, const View& row, const View& col, const View& values,
               const View& dense, int64_t rows) {
    const int64_t* positions = checked(ctx, "row", row, rows);
    const int64_t* columns = checked(ctx, "column", col, dense.size(0));
    if (out.numel == 0) return;
    const Rows by = by_row(ctx, positions, row.numel, rows);
    const WidenedOut wide(ctx, out);
    const View factors = contiguous_in(ctx, widened(ctx, values)), given = widened(ctx, dense);
    const int64_t width = out.size(1);
    const View table = width <= 1 || given.stride(1) == 1 ? given : contiguous_in(ctx, given);
    const auto& kernels = sparse_kernels();
    if (table.dtype == DType::Float32)
        kernels.rows_f32(wide.view().as<float>(), by.starts, by.order, columns, factors.as<float>(),
                         table.as<float>(), table.stride(0), width, rows);
    else
        kernels.rows_f64(wide.view().as<double>(), by.starts, by.order, columns, factors.as<double>(),
                         table.as<double>(), table.stride(0), width, rows);
    wide.finish();
}

void sampled_products(KernelContext& ctx, const View& out, const View& row, const View& col, const View& a,
                      const View& b) {
    const int64_t *rows = checked(ctx, "row", row, a.size(0)),
                  *columns = checked(ctx, "column", col, b.size(0));
    const WidenedOut wide(ctx, out);
    const View x = contiguous_in(ctx, widened(ctx, a)), y = contiguous_in(ctx, widened(ctx, b));
    const int64_t width = a.size(1), count = out.numel;
    if (x.dtype == DType::Float32)
        sparse_kernels().products_f32(wide.view().as<float>(), rows, columns, x.as<float>(), y.as<float>(),
                                      width, count);
    else
        sparse_kernels().products_f64(wide.view().as<double>(), rows, columns, x.as<double>(), y.as<double>(),
                                      width, count);
    wide.finish();
}

}  // namespace rushlight::cpu
