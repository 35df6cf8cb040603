// Kernels of scatter_reduce (scatter.h), which combine all values for the same element.
#pragma once

#include "cpu/capability.h"
#include "cpu/odometer.h"
#include "ops/functors/scatter.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Describes the rows along one dimension of `index`, of `src` and of the tensor that is written. `index` and `src` are
/// row-major, with the shape (outer, n, inner). Rows are reduced in blocks, so that memory is read in order. Two rows never write to the
/// same element, so different threads can reduce different rows.
struct ScatterPlan {
    int64_t outer = 1, n = 1, inner = 1;
    int64_t size = 1, stride = 0;  // the size and the stride of the dimension in the written tensor
    Odometer others;  // iterates over (outer, inner), with the written tensor's strides
    const int64_t* index;
    bool slices = false;  // all rows share `index`; the written tensor is row-major (outer, size, inner)

    /// The size of a block: kColumns adjacent columns if `slices` is true, otherwise kRows adjacent rows.
    static constexpr int64_t kColumns = 1024, kRows = 32;
    [[gnu::always_inline]] int64_t width() const { return slices ? kColumns : kRows; }
    [[gnu::always_inline]] int64_t across() const { return (inner + width() - 1) / width(); }
};

struct ScatterKernels {
    // Reduces the blocks begin .. end-1 of outer * across(). `counts` is used for means only: if `slices`, it holds
    // the number of values for each index; otherwise it is scratch memory for size * width() numbers.
    using Reduce = void (*)(const ScatterPlan&, void* to, const void* from, bool include_self,
                            int64_t* counts, int64_t begin, int64_t end);
    Reduce reduce[kNumScatterReductions][kNumDTypes];  // null if the reduction is not defined for the dtype
};

RUSHLIGHT_KERNEL_TABLE(ScatterKernels, scatter_kernels)

}  // namespace rushlight::cpu
