// Loops over elements that do not lie in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/capability.h"
#include "cpu/loop_table.h"
#include "cpu/odometer.h"

namespace rushlight::cpu {

/// Rows of indices into a tensor's dimension: index j of a row stands for element j * step + index * stride, counted from
/// where the row begins. Strides count elements.
struct IndexRows {
    const int64_t* index;  // dense, `width` in a row
    int64_t width = 1, step = 0;
    bool shared = false;  // one row of indices for all
    int64_t size = 1, stride = 0;  // of the dimension
    Odometer rows;  // where they begin
};
/// Some rows, and some columns of each.
struct RowRange {
    int64_t first, last, begin, end;
};

struct PositionKernels {
    // Whether all are in [0, size).
    bool (*within)(const int64_t* index, int64_t n, int64_t size);
    // to[i] = from[i], those below 0 counted from the end; whether all are in [-size, size).
    bool (*from_the_front)(int64_t* to, const int64_t* from, int64_t n, int64_t size);
    // to[i] = index[i] * stride, or added to it; indices below 0 count from the end. Whether all are in [-size, size).
    bool (*offsets)(int64_t* to, const int64_t* index, int64_t n, int64_t size, int64_t stride, bool add);
    // Elements of `in` to a dense `out` of the index's shape; false where an index is out of range, which is not followed.
    bool (*gather)(const IndexRows&, RowRange, void* out, const void* in, size_t itemsize);
    // Elements of a dense `from`, or with `from_step` 0 a single one, to `to`. Indices are checked already.
    void (*scatter)(const IndexRows&, RowRange, void* to, const void* from, int64_t from_step,
                    size_t itemsize);
    // The same, added; bools are joined by or. For each dtype.
    using Add = void (*)(const IndexRows&, RowRange, void* to, const void* from);
    Add add[kNumDTypes];
    // The loop that copies adjacent elements of `itemsize` bytes, read from behind.
    LoopFn (*copy_backwards)(size_t itemsize);
};

RUSHLIGHT_KERNEL_TABLE(PositionKernels, position_kernels)

}  // namespace rushlight::cpu
