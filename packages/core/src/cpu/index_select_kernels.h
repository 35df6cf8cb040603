// Kernels of the operators in index_select.h.
#pragma once

#include "cpu/capability.h"
#include "cpu/odometer.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `n` indexed slices of a tensor along one dimension. They are copied to, or from, a row-major tensor of shape
/// (before, n, after, run), whose last dimension is a run of `run` adjacent elements. The `n` runs at one position of
/// `before` and one position of `after` are called a piece.
struct IndexedSlices {
    const int64_t* index;  // checked; within [0, size)
    int64_t n, size = 1, stride = 0, run = 1;
    Odometer before, after;

    // Number of columns of a run that a thread processes at a time.
    static constexpr int64_t kColumns = 1024;
    [[gnu::always_inline]] int64_t across() const { return (run + kColumns - 1) / kColumns; }
    [[gnu::always_inline]] int64_t parts() const { return before.count * after.count * across(); }
};

struct IndexSelectKernels {
    // Processes the parts begin .. end-1 of parts(). A part is a block of columns of one piece.
    using Move = void (*)(const IndexedSlices&, void* to, const void* from, size_t itemsize, int64_t begin,
                          int64_t end);
    Move select;  // copies elements from the slices to the row-major tensor
    Move copy;  // copies elements from the row-major tensor to the slices
    Move fill;  // writes one element to all slices
    using Add = void (*)(const IndexedSlices&, void* to, const void* from, int64_t begin, int64_t end);
    Add add[kNumDTypes];  // adds the row-major tensor, in the order of the index; bools are combined by `or`
    // Computes out[i] = in[i] * factor, all of the same dtype.
    using Scale = void (*)(void* out, const void* in, const void* factor, int64_t n);
    Scale scale[kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(IndexSelectKernels, index_select_kernels)

/// Copies the slices to the row-major memory `out`.
void read_slices(const IndexedSlices& slices, void* out, const void* in, size_t itemsize);
/// Copies the row-major memory `from` to the slices. If `one` is true, `from` is a single element, which is copied to
/// all elements of the slices. If a slice is indexed twice, the value written last is kept.
void write_slices(const IndexedSlices& slices, void* to, const void* from, bool one, size_t itemsize);
void add_slices(const IndexedSlices& slices, void* to, const void* from, DType dtype);

}  // namespace rushlight::cpu
