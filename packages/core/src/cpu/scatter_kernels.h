// The loops behind scatter.h that reduce what meets at one position.
#pragma once

#include "cpu/capability.h"
#include "cpu/odometer.h"
#include "ops/functors/scatter.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The rows along a dimension of `index` and `src`, row-major (outer, n, inner), and of the tensor that is written. Rows are
/// reduced in blocks, so that memory is read in order, and each by one thread: no two rows write to one position.
struct ScatterPlan {
    int64_t outer = 1, n = 1, inner = 1;
    int64_t size = 1, stride = 0;  // of the written tensor's dimension
    Odometer others;  // over (outer, inner), with the written tensor's strides
    const int64_t* index;
    bool slices = false;  // `index` is one row for all; the written tensor is row-major (outer, size, inner)

    /// How many adjacent columns, or rows, make a block.
    static constexpr int64_t kColumns = 1024, kRows = 32;
    [[gnu::always_inline]] int64_t width() const { return slices ? kColumns : kRows; }
    [[gnu::always_inline]] int64_t across() const { return (inner + width() - 1) / width(); }
};

struct ScatterKernels {
    // Blocks begin .. end-1 of outer * across(). `counts` is for means: of slices, how many meet at each position; else
    // memory for size * width() numbers.
    using Reduce = void (*)(const ScatterPlan&, void* to, const void* from, bool include_self,
                            int64_t* counts, int64_t begin, int64_t end);
    Reduce reduce[kNumScatterReductions][kNumDTypes];  // null where it is not defined
};

RUSHLIGHT_KERNEL_TABLE(ScatterKernels, scatter_kernels)

}  // namespace rushlight::cpu
