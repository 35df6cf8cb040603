// Kernels of the functions in metric.h. Each call processes one contiguous row of `n` elements and `count` other rows.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Kernels by dtype. The entry of an unsupported dtype is null.
struct MetricKernels {
    using Distances = void (*)(void* out, const void* row, const void* others, int64_t count, int64_t n,
                               double p);
    // Computes the gradient with respect to `row`. `factors` has room for `count` elements.
    using Gradient = void (*)(void* out, const void* grad, const void* row, const void* others,
                              const void* distances, int64_t count, int64_t n, double p, void* factors);
    Distances distances[kNumDTypes];
    Gradient gradient[kNumDTypes];
};

RUSHLIGHT_KERNEL_TABLE(MetricKernels, metric_kernels)

}  // namespace rushlight::cpu
