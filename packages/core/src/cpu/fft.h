// Discrete Fourier transforms along dimensions of any length, of float32 and float64 and the complex dtypes of these widths. `forward` has
// exp(-2 pi i jk / n), else exp(+2 pi i jk / n); results are multiplied by `scale`.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Complex numbers to complex ones, along one dimension after the other.
void fft_c2c(KernelContext& ctx, const View& out, const View& input, Ints dims, double scale, bool forward);
/// n real numbers to the first n / 2 + 1 complex ones; the others are their conjugates.
void fft_r2c(KernelContext& ctx, const View& out, const View& input, int64_t dim, double scale, bool forward);
/// n / 2 + 1 complex numbers, of n that are conjugate in pairs, to n real ones.
void fft_c2r(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t n, double scale,
             bool forward);

}  // namespace rushlight::cpu
