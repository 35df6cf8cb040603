// Interpolation along one dimension and its gradient, and sampling of images at arbitrary positions.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `mode` is a functors::ResampleMode. If `scale` is 0, the quotient of the sizes is used as the scale.
void resample(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t size, int64_t mode,
              bool align_corners, double scale, bool antialias);
void resample_backward(KernelContext& ctx, const View& grad_input, const View& grad_output, int64_t dim,
                       int64_t size, int64_t mode, bool align_corners, double scale, bool antialias);

/// Samples input (N, C, sizes...) at the coordinates in grid (N, positions, dims), and writes the samples to out (N, C,
/// positions). `mode` and `padding` have the meaning of grid_sampler's arguments.
void grid_sample(KernelContext& ctx, const View& out, const View& input, const View& grid, int64_t mode,
                 int64_t padding, bool align_corners);

}  // namespace rushlight::cpu
