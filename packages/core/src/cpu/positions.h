// Kernels that read and write elements by their indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/capability.h"
#include "cpu/loop_table.h"
#include "cpu/odometer.h"

namespace rushlight::cpu {

/// Rows of indices along a dimension of a tensor. Index j of a row selects the element at offset j * step + index[j] *
/// stride from the beginning of the row. Strides are in elements.
struct IndexRows {
    const int64_t* index;  // contiguous, `width` per row
    int64_t width = 1, step = 0;
    bool shared = false;  // whether all rows use the same indices
    int64_t size = 1, stride = 0;  // the size and the stride of the indexed dimension
    Odometer rows;  // offsets at which the rows begin
};
/// The rows [first, last), and the columns [begin, end) of each of these rows.
struct RowRange {
    int64_t first, last, begin, end;
};

struct PositionKernels {
    // Returns whether all indices are in [0, size).
    bool (*within)(const int64_t* index, int64_t n, int64_t size);
    // Copies indices, and adds `size` to negative ones. Returns whether all indices are in [-size, size).
    bool (*from_the_front)(int64_t* to, const int64_t* from, int64_t n, int64_t size);
    // Computes to[i] = index[i] * stride, or to[i] += index[i] * stride if `add`. Negative indices count from the
    // end. Returns whether all indices are in [-size, size).
    bool (*offsets)(int64_t* to, const int64_t* index, int64_t n, int64_t size, int64_t stride, bool add);
    // Copies the elements of `in` at the indices to the contiguous `out`, which has the shape of the indices.
    // Returns false if an index is out of range; such an index is not dereferenced.
    bool (*gather)(const IndexRows&, RowRange, void* out, const void* in, size_t itemsize);
    // Copies the elements of the contiguous `from`, or its single element if `from_step` is 0, to the indexed
    // elements of `to`. The caller has checked the indices.
    void (*scatter)(const IndexRows&, RowRange, void* to, const void* from, int64_t from_step,
                    size_t itemsize);
    // Adds the elements of `from` to the indexed elements of `to`, for each dtype. Bools are combined by `or`.
    using Add = void (*)(const IndexRows&, RowRange, void* to, const void* from);
    Add add[kNumDTypes];
    // Returns the loop that copies adjacent elements of `itemsize` bytes in reverse order.
    LoopFn (*copy_backwards)(size_t itemsize);
    // Copies runs of adjacent bytes, whose number is the loop's parameter.
    LoopFn copy_runs;
};

RUSHLIGHT_KERNEL_TABLE(PositionKernels, position_kernels)

}  // namespace rushlight::cpu
