// Discrete Fourier transforms along dimensions of any length, of float32, float64 and the complex dtypes of these
// widths. `forward` selects the factor exp(-2 pi i jk / n), otherwise exp(+2 pi i jk / n). Results are multiplied
// by `scale`.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Transforms complex numbers to complex numbers, along one dimension after the other.
void fft_c2c(KernelContext& ctx, const View& out, const View& input, Ints dims, double scale, bool forward);
/// Transforms n real numbers to the first n / 2 + 1 complex numbers. The remaining numbers are conjugates of these
/// numbers and are not stored.
void fft_r2c(KernelContext& ctx, const View& out, const View& input, int64_t dim, double scale, bool forward);
/// Transforms the first n / 2 + 1 of n complex numbers, which are conjugate in pairs, to n real numbers.
void fft_c2r(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t n, double scale,
             bool forward);

}  // namespace rushlight::cpu
