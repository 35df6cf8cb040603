// The transforms of Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray, "Fast algorithms for convolutional
// neural networks", 2016), for eight tiles at a time, one in each lane.
//
// Note [Points of the transforms]
// The polynomials are evaluated at 0, +a, -a, +b, -b and infinity with a^2 = 1/2 and b^2 = 2. The coefficients are
// then closer to one than with the usual points 1 and 2, and errors are two to three times smaller.
#pragma once

#include <cstdint>

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU::winograd {

typedef float Eight __attribute__((vector_size(32)));

inline constexpr int kTile = 6;  // size of an input tile in each dimension
inline constexpr int kOut = 4;  // size of an output tile in each dimension
inline constexpr int kPoints = 36;  // products for each tile and pair of channels

inline constexpr float kA = 0.70710678118654752440f;  // a; b is 2 a
inline constexpr float kB = 1.41421356237309504880f;

RL_INLINE Eight load_eight(const float* p) {
    Eight v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
RL_INLINE void store_eight(float* p, Eight v) { __builtin_memcpy(p, &v, sizeof v); }

/// Computes B^T x in place, from six elements of the input.
template <class V>
RL_INLINE void input_1d(V* x) {
    const V even_a = x[4] - 2.f * x[2], odd_a = kA * (x[3] - 2.f * x[1]);
    const V even_b = x[4] - 0.5f * x[2], odd_b = kB * (x[3] - 0.5f * x[1]);
    x[0] = x[0] - 2.5f * x[2] + x[4];
    x[5] = x[1] - 2.5f * x[3] + x[5];
    x[1] = even_a + odd_a;
    x[2] = even_a - odd_a;
    x[3] = even_b + odd_b;
    x[4] = even_b - odd_b;
}

/// Computes A^T x: four elements of the output from six products.
template <class V>
RL_INLINE void output_1d(const V* x, V* y) {
    const V sum_a = x[1] + x[2], difference_a = x[1] - x[2];
    const V sum_b = x[3] + x[4], difference_b = x[3] - x[4];
    y[0] = x[0] + sum_a + sum_b;
    y[1] = kA * difference_a + kB * difference_b;
    y[2] = 0.5f * sum_a + 2.f * sum_b;
    y[3] = (0.5f * kA) * difference_a + (2.f * kB) * difference_b + x[5];
}

/// Computes A x: six elements from four elements of the output's gradient.
template <class V>
RL_INLINE void gradient_1d(const V* x, V* y) {
    const V even_a = x[0] + 0.5f * x[2], odd_a = kA * (x[1] + 0.5f * x[3]);
    const V even_b = x[0] + 2.f * x[2], odd_b = kB * (x[1] + 2.f * x[3]);
    y[0] = x[0];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[3];
}

// The reciprocals of the denominators of G: 2 a^2 (a^2 - b^2) and 2 b^2 (b^2 - a^2). The denominator of point 0 is
// a^2 b^2 = 1.
inline constexpr float kOfA = -1.f / 1.5f;
inline constexpr float kOfB = 1.f / 6.f;

/// Computes G x: six elements from three elements of a filter.
template <class V>
RL_INLINE void filter_1d(const V* x, V* y) {
    const V even_a = kOfA * (x[0] + 0.5f * x[2]), odd_a = (kOfA * kA) * x[1];
    const V even_b = kOfB * (x[0] + 2.f * x[2]), odd_b = (kOfB * kB) * x[1];
    y[0] = x[0];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[2];
}

/// Computes G^T x: three elements of a filter's gradient from six products.
template <class V>
RL_INLINE void filter_gradient_1d(const V* x, V* y) {
    const V sum_a = kOfA * (x[1] + x[2]), sum_b = kOfB * (x[3] + x[4]);
    y[0] = x[0] + sum_a + sum_b;
    y[1] = (kOfA * kA) * (x[1] - x[2]) + (kOfB * kB) * (x[3] - x[4]);
    y[2] = 0.5f * sum_a + 2.f * sum_b + x[5];
}

/// Transposes eight rows of eight elements.
RL_INLINE void transpose_eight(Eight* r) {
    Eight t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = (Eight)_mm256_unpacklo_ps((__m256)r[i], (__m256)r[i + 1]);
        t[i + 1] = (Eight)_mm256_unpackhi_ps((__m256)r[i], (__m256)r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        r[i] = (Eight)_mm256_shuffle_ps((__m256)t[i], (__m256)t[i + 2], 0x44);
        r[i + 1] = (Eight)_mm256_shuffle_ps((__m256)t[i], (__m256)t[i + 2], 0xEE);
        r[i + 2] = (Eight)_mm256_shuffle_ps((__m256)t[i + 1], (__m256)t[i + 3], 0x44);
        r[i + 3] = (Eight)_mm256_shuffle_ps((__m256)t[i + 1], (__m256)t[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        t[i] = (Eight)_mm256_permute2f128_ps((__m256)r[i], (__m256)r[i + 4], 0x20);
        t[i + 4] = (Eight)_mm256_permute2f128_ps((__m256)r[i], (__m256)r[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i] = t[i];
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU::winograd
