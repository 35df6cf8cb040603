// The loops behind running.h, on row-major arrays (outer, size, inner); they run along `size`.
#pragma once

#include "cpu/capability.h"
#include "rushlight/dtype.h"

namespace rushlight::cpu {

struct RunningShape {
    int64_t outer, size, inner;
};

/// A loop for each dtype that has one, else null.
struct RunningKernels {
    using Scan = void (*)(const RunningShape&, void* out, const void* in);
    using Extreme = void (*)(const RunningShape&, void* values, int64_t* indices, const void* in);
    using Recurrence = void (*)(const RunningShape&, void* out, const void* factors, const void* terms,
                                bool reverse);
    Scan sum[kNumDTypes], product[kNumDTypes], log_sum_exp[kNumDTypes];
    Extreme largest[kNumDTypes], smallest[kNumDTypes];
    Recurrence recurrence[kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(RunningKernels, running_kernels)

}  // namespace rushlight::cpu
