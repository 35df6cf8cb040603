// Discrete Fourier transforms along dimensions of any length, of float32, float64 and the complex dtypes of these
// widths. `forward` selects the factor exp(-2 pi i jk / n), otherwise exp(+2 pi i jk / n). Results are multiplied
// by `scale`.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes the Fourier transform of complex numbers, along one dimension after the other.
void fft_c2c(KernelContext& ctx, const View& out, const View& input, Ints dims, double scale, bool forward);
/// Computes the first n / 2 + 1 numbers of the Fourier transform of n real numbers. The remaining numbers of the
/// transform are conjugates of these numbers and are not stored.
void fft_r2c(KernelContext& ctx, const View& out, const View& input, int64_t dim, double scale, bool forward);
/// Computes the Fourier transform of n complex numbers that are conjugate in pairs, so that the result consists of n
/// real numbers. Only the first n / 2 + 1 of the complex numbers are read.
void fft_c2r(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t n, double scale,
             bool forward);

}  // namespace rushlight::cpu
