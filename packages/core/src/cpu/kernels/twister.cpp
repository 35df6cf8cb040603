// Normal numbers in float32 that equal PyTorch's bit for bit. They are computed by the Box-Muller method, with the
// polynomials of S. Moshier's Cephes library for log, sin and cos. Multiplications and additions are fused (fma)
// where they are fused in PyTorch.
#include "cpu/twister.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

[[gnu::always_inline]] inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// Returns the logarithm of x in (0, 1].
[[gnu::always_inline]] inline float log_of(float x) {
    const int32_t bits = __builtin_bit_cast(int32_t, x);
    float exponent = static_cast<float>((bits >> 23) - 126);
    float m = __builtin_bit_cast(float, (bits & 0x007FFFFF) | 0x3F000000);  // in [0.5, 1)
    const bool low = m < 0.707106781186547524F;
    const float again = low ? m : 0.0F;
    m = m - 1.0F + again;
    exponent = exponent - (low ? 1.0F : 0.0F);
    float y = 7.0376836292e-2F;
    y = fma(y, m, -1.1514610310e-1F);
    y = fma(y, m, 1.1676998740e-1F);
    y = fma(y, m, -1.2420140846e-1F);
    y = fma(y, m, 1.4249322787e-1F);
    y = fma(y, m, -1.6668057665e-1F);
    y = fma(y, m, 2.0000714765e-1F);
    y = fma(y, m, -2.4999993993e-1F);
    y = fma(y, m, 3.3333331174e-1F);
    const float square = m * m;
    y = fma(y * m, square, exponent * -2.12194440e-4F);
    y = fma(square, -0.5F, y);
    return fma(exponent, 0.693359375F, m + y);
}

// Computes the sine and cosine of x in [0, 2 pi].
[[gnu::always_inline]] inline void sin_cos_of(float x, float& sine, float& cosine) {
    const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516F) + 1) & ~1;
    const float y = static_cast<float>(octant);
    x = fma(y, -0.78515625F, x);
    x = fma(y, -2.4187564849853515625e-4F, x);
    x = fma(y, -3.77489497744594108e-8F, x);
    const float square = x * x;
    float c = 2.443315711809948e-5F;
    c = fma(c, square, -1.388731625493765e-3F);
    c = fma(c, square, 4.166664568298827e-2F);
    c = fma(c * square, square, square * -0.5F) + 1.0F;
    float s = -1.9515295891e-4F;
    s = fma(s, square, 8.3321608736e-3F);
    s = fma(s, square, -1.6666654611e-1F);
    s = fma(s * square, x, x);
    const bool swapped = octant & 2;
    const float sine_size = swapped ? c : s, cosine_size = swapped ? s : c;
    sine = octant & 4 ? -sine_size : sine_size;
    cosine = (octant - 2) & 4 ? cosine_size : -cosine_size;
}

void normal_blocks(float* values, int64_t blocks, float mean, float std) {
    for (int64_t b = 0; b < blocks; ++b) {
        float* block = values + 16 * b;
#pragma omp simd
        for (int j = 0; j < 8; ++j) {
            float sine, cosine;
            sin_cos_of(6.283185307179586F * block[j + 8], sine, cosine);
            const float radius = __builtin_sqrtf(-2.0F * log_of(1.0F - block[j]));
            block[j] = fma(radius * cosine, std, mean);
            block[j + 8] = fma(radius * sine, std, mean);
        }
    }
}

}  // namespace

extern const TwisterKernels twister_kernels_table;
const TwisterKernels twister_kernels_table{normal_blocks};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
