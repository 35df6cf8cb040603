// Kernels of grid_sample (resample.h), on row-major arrays.
#pragma once

#include "cpu/capability.h"
#include "ops/functors/grid_sample.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `sizes` holds the `dims` spatial sizes of the input, the last dimension first, in the order of the grid's
/// coordinates.
struct GridShape {
    int64_t batch, channels, positions;
    int dims;
    int64_t sizes[3];
    int64_t mode, padding;
    bool align_corners;
};

struct GridSampleKernels {
    void (*f32)(const GridShape&, float* out, const float* in, const float* grid);
    void (*f64)(const GridShape&, double* out, const double* in, const double* grid);
};

RUSHLIGHT_KERNEL_TABLE(GridSampleKernels, grid_sample_kernels)

}  // namespace rushlight::cpu
