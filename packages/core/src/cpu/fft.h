// Discrete Fourier transforms of lines of elements, any length. `forward` has exp(-2 pi i jk / n), else exp(+2 pi i jk / n).
#pragma once

#include <vector>

#include "rushlight/dtype.h"

namespace rushlight::cpu {

/// Where lines begin and how far their elements lie apart, in elements.
struct FftLines {
    int64_t n;  // length of the transform
    std::vector<int64_t> from, to;
    int64_t from_stride, to_stride;
};

/// `real` is the dtype of the parts, float32 or float64. n complex numbers to n; `in` may be `out`.
void fft_c2c(DType real, const FftLines& lines, const void* in, void* out, double scale, bool forward);
/// n real numbers to the first n / 2 + 1 complex ones; the others are their conjugates.
void fft_r2c(DType real, const FftLines& lines, const void* in, void* out, double scale, bool forward);
/// n / 2 + 1 complex numbers, of n that are conjugate in pairs, to n real ones.
void fft_c2r(DType real, const FftLines& lines, const void* in, void* out, double scale, bool forward);

}  // namespace rushlight::cpu
