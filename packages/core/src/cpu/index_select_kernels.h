// The loops behind index_select.h.
#pragma once

#include "cpu/capability.h"
#include "cpu/odometer.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `n` indexed slices of a tensor along one dimension, which are read into, or written from, a row-major tensor of shape
/// (before, n, after, run). A piece is the part at one position of `before` and `after`: `n` runs of adjacent elements.
struct IndexedSlices {
    const int64_t* index;  // checked; within [0, size)
    int64_t n, size = 1, stride = 0, run = 1;
    Odometer before, after;

    // Columns of a run that a thread takes at a time.
    static constexpr int64_t kColumns = 1024;
    [[gnu::always_inline]] int64_t across() const { return (run + kColumns - 1) / kColumns; }
    [[gnu::always_inline]] int64_t parts() const { return before.count * after.count * across(); }
};

struct IndexSelectKernels {
    // Parts begin .. end-1 of parts(): columns of a piece.
    using Move = void (*)(const IndexedSlices&, void* to, const void* from, size_t itemsize, int64_t begin,
                          int64_t end);
    Move select;  // from the slices to the row-major tensor
    Move copy;  // and back
    Move fill;  // one element
    using Add = void (*)(const IndexedSlices&, void* to, const void* from, int64_t begin, int64_t end);
    Add add[kNumDTypes];  // from the row-major tensor, in the order of the index; bools are joined by or
    // out[i] = in[i] * factor, of one dtype.
    using Scale = void (*)(void* out, const void* in, const void* factor, int64_t n);
    Scale scale[kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(IndexSelectKernels, index_select_kernels)

/// To the row-major `out`.
void read_slices(const IndexedSlices& slices, void* out, const void* in, size_t itemsize);
/// From the row-major `from`, or one element of it everywhere. If a slice is indexed twice, the last one is kept.
void write_slices(const IndexedSlices& slices, void* to, const void* from, bool one, size_t itemsize);
void add_slices(const IndexedSlices& slices, void* to, const void* from, DType dtype);

}  // namespace rushlight::cpu
