// Interpolation along one dimension, and its gradient; images read at any positions.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `mode` is a functors::ResampleMode; scale 0: the quotient of the sizes.
void resample(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t size, int64_t mode,
              bool align_corners, double scale, bool antialias);
void resample_backward(KernelContext& ctx, const View& grad_input, const View& grad_output, int64_t dim,
                       int64_t size, int64_t mode, bool align_corners, double scale, bool antialias);

/// (N, C, positions) of (N, C, sizes) at grid (N, positions, dims). mode and padding as of grid_sampler.
void grid_sample(KernelContext& ctx, const View& out, const View& input, const View& grid, int64_t mode,
                 int64_t padding, bool align_corners);

}  // namespace rushlight::cpu
