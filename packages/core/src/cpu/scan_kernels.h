// Kernels of the operators in scan.h, on row-major arrays (outer, size, inner). They scan along `size`.
#pragma once

#include "cpu/capability.h"
#include "cpu/split_shape.h"

namespace rushlight::cpu {

/// Kernels by dtype. The entry of an unsupported dtype is null.
struct ScanKernels {
    using Scan = void (*)(const SplitShape&, void* out, const void* in);
    using Extreme = void (*)(const SplitShape&, void* values, int64_t* indices, const void* in);
    using Recurrence = void (*)(const SplitShape&, void* out, const void* factors, const void* terms,
                                bool reverse);
    Scan sum[kNumDTypes], product[kNumDTypes], log_sum_exp[kNumDTypes];
    Extreme largest[kNumDTypes], smallest[kNumDTypes];
    Recurrence recurrence[kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(ScanKernels, scan_kernels)

}  // namespace rushlight::cpu
