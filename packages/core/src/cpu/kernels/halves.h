// Conversions of adjacent float16 and bfloat16 elements, with instructions that the compiler does not generate from the
// integer arithmetic of Half. These instructions preserve the payload of a NaN; the conversions of Half do not. Included by kernel
// files only: Note [Kernels compiled twice] in cpu/capability.h.
#pragma once

#include "cpu/kernels/simd.h"
#include "rushlight/half.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

#if defined(__AVX512F__)
RL_INLINE Vec<float> floats_at(const Half* in) {
    return (Vec<float>)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
}
RL_INLINE Vec<float> floats_at(const BFloat16* in) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    return (Vec<float>)_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
}
RL_INLINE void to_halves(Half* out, Vec<float> v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}
RL_INLINE Vec<double> doubles_at(const Half* in) {
    return (Vec<double>)_mm512_cvtps_pd(
        _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
}
RL_INLINE void to_halves(Half* out, Vec<double> v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm256_cvtps_ph(_mm512_cvtpd_ps((__m512d)v), _MM_FROUND_TO_NEAREST_INT));
}
#else
RL_INLINE Vec<float> floats_at(const Half* in) {
    return (Vec<float>)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}
RL_INLINE Vec<float> floats_at(const BFloat16* in) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    return (Vec<float>)_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
}
RL_INLINE void to_halves(Half* out, Vec<float> v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}
RL_INLINE Vec<double> doubles_at(const Half* in) {
    return (Vec<double>)_mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in))));
}
RL_INLINE void to_halves(Half* out, Vec<double> v) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out),
                     _mm_cvtps_ph(_mm256_cvtpd_ps((__m256d)v), _MM_FROUND_TO_NEAREST_INT));
}
#endif

/// Reads `count` elements, which are fewer than a vector has lanes. The remaining lanes become 0.
template <class E>
RL_INLINE Vec<float> floats_at(const E* in, int64_t count) {
    E rest[kLanes<float>] = {};
    __builtin_memcpy(rest, in, static_cast<size_t>(count) * sizeof(E));
    return floats_at(rest);
}

/// Converts `n` adjacent elements.
inline void convert_row(float* out, const Half* in, int64_t n) {
    constexpr int64_t kL = kLanes<float>;
    int64_t i = 0;
    for (; i + kL <= n; i += kL) store(out + i, floats_at(in + i));
    if (i == n) return;
    Half rest[kL] = {};
    __builtin_memcpy(rest, in + i, static_cast<size_t>(n - i) * sizeof(Half));
    store(out + i, floats_at(rest), Lanes<float>(n - i));
}
inline void convert_row(Half* out, const float* in, int64_t n) {
    constexpr int64_t kL = kLanes<float>;
    int64_t i = 0;
    for (; i + kL <= n; i += kL) to_halves(out + i, load(in + i));
    if (i == n) return;
    Half rest[kL];
    to_halves(rest, load(in + i, Lanes<float>(n - i)));
    __builtin_memcpy(out + i, rest, static_cast<size_t>(n - i) * sizeof(Half));
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
