// Vectors of the width for which this copy of the kernels is compiled. They use the compiler's vector extension:
// arithmetic is written with operators, and a * b + c becomes one fused instruction. Included by kernel files only:
// Note [Kernels compiled twice] in cpu/capability.h.
#pragma once

// GCC's header deliberately leaves registers undefined, and GCC then warns about them where the header's functions
// are inlined.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

#include "cpu/capability.h"
#include "cpu/transpose.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

#define RL_INLINE [[gnu::always_inline]] static inline

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;
#else
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;
#endif

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vec = typename VectorOf<T>::type;
/// A vector of indices of lanes.
template <class T>
using LaneIndex = decltype(Vec<T>{} == Vec<T>{});
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
RL_INLINE Vec<T> load(const T* p) {
    Vec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
template <class T>
RL_INLINE void store(T* p, Vec<T> v) {
    __builtin_memcpy(p, &v, sizeof v);
}

/// Stores a vector without reading its cache line first: Note [Streaming stores] in cpu/streaming.h. The address
/// must be a multiple of the vector's size.
template <class T>
RL_INLINE void store_past_caches(T* p, Vec<T> v) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#else
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#endif
}

// x - 0 preserves the sign of a zero x, which 0 + x would not.
template <class T>
RL_INLINE Vec<T> broadcast(T x) {
    return x - Vec<T>{};
}

/// The lanes of a vector that are in use, which are the first `count` lanes. Other lanes are loaded as zero and are not
/// stored.
template <class T>
struct Lanes {
#if defined(__AVX512F__)
    uint16_t bits;
    explicit Lanes(int64_t count) : bits(static_cast<uint16_t>((1u << count) - 1)) {}
#else
    __m256i bits;
    explicit Lanes(int64_t count);
#endif
};

#if defined(__AVX512F__)
RL_INLINE Vec<float> load(const float* p, Lanes<float> l) {
    return (Vec<float>)_mm512_maskz_loadu_ps(l.bits, p);
}
RL_INLINE Vec<double> load(const double* p, Lanes<double> l) {
    return (Vec<double>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(l.bits), p);
}
RL_INLINE void store(float* p, Vec<float> v, Lanes<float> l) { _mm512_mask_storeu_ps(p, l.bits, (__m512)v); }
RL_INLINE void store(double* p, Vec<double> v, Lanes<double> l) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(l.bits), (__m512d)v);
}
#else
template <>
[[gnu::always_inline]] inline Lanes<float>::Lanes(int64_t count)
    : bits(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
template <>
[[gnu::always_inline]] inline Lanes<double>::Lanes(int64_t count)
    : bits(_mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3))) {}
RL_INLINE Vec<float> load(const float* p, Lanes<float> l) {
    return (Vec<float>)_mm256_maskload_ps(p, l.bits);
}
RL_INLINE Vec<double> load(const double* p, Lanes<double> l) {
    return (Vec<double>)_mm256_maskload_pd(p, l.bits);
}
RL_INLINE void store(float* p, Vec<float> v, Lanes<float> l) { _mm256_maskstore_ps(p, l.bits, (__m256)v); }
RL_INLINE void store(double* p, Vec<double> v, Lanes<double> l) {
    _mm256_maskstore_pd(p, l.bits, (__m256d)v);
}
#endif

/// Returns v with zeros in the lanes that are not in use.
#if defined(__AVX512F__)
RL_INLINE Vec<float> keep(Vec<float> v, Lanes<float> l) {
    return (Vec<float>)_mm512_maskz_mov_ps(l.bits, (__m512)v);
}
RL_INLINE Vec<double> keep(Vec<double> v, Lanes<double> l) {
    return (Vec<double>)_mm512_maskz_mov_pd(static_cast<__mmask8>(l.bits), (__m512d)v);
}
#else
RL_INLINE Vec<float> keep(Vec<float> v, Lanes<float> l) {
    return (Vec<float>)_mm256_and_ps((__m256)v, _mm256_castsi256_ps(l.bits));
}
RL_INLINE Vec<double> keep(Vec<double> v, Lanes<double> l) {
    return (Vec<double>)_mm256_and_pd((__m256d)v, _mm256_castsi256_pd(l.bits));
}
#endif

/// Returns v with the value `other` in the lanes that are not in use.
#if defined(__AVX512F__)
RL_INLINE Vec<float> fill(Vec<float> v, Lanes<float> l, float other) {
    return (Vec<float>)_mm512_mask_mov_ps((__m512)broadcast(other), l.bits, (__m512)v);
}
RL_INLINE Vec<double> fill(Vec<double> v, Lanes<double> l, double other) {
    return (Vec<double>)_mm512_mask_mov_pd((__m512d)broadcast(other), static_cast<__mmask8>(l.bits),
                                           (__m512d)v);
}
#else
RL_INLINE Vec<float> fill(Vec<float> v, Lanes<float> l, float other) {
    return (Vec<float>)_mm256_blendv_ps((__m256)broadcast(other), (__m256)v, _mm256_castsi256_ps(l.bits));
}
RL_INLINE Vec<double> fill(Vec<double> v, Lanes<double> l, double other) {
    return (Vec<double>)_mm256_blendv_pd((__m256d)broadcast(other), (__m256d)v, _mm256_castsi256_pd(l.bits));
}
#endif

/// Used instead of Lanes where all lanes are known at compile time to be in use.
template <class T>
struct WholeVector {};
template <class T>
RL_INLINE Vec<T> load(const T* p, WholeVector<T>) {
    return load(p);
}
template <class T>
RL_INLINE void store(T* p, Vec<T> v, WholeVector<T>) {
    store(p, v);
}
template <class T>
RL_INLINE Vec<T> keep(Vec<T> v, WholeVector<T>) {
    return v;
}
template <class T>
RL_INLINE Vec<T> fill(Vec<T> v, WholeVector<T>, T) {
    return v;
}

/// Return, for each lane, the larger or the smaller of the elements of `a` and `b`, or the element of `b` if either is
/// NaN.
#if defined(__AVX512F__)
RL_INLINE Vec<float> larger(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm512_max_ps((__m512)a, (__m512)b);
}
RL_INLINE Vec<double> larger(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm512_max_pd((__m512d)a, (__m512d)b);
}
RL_INLINE Vec<float> smaller(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm512_min_ps((__m512)a, (__m512)b);
}
RL_INLINE Vec<double> smaller(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm512_min_pd((__m512d)a, (__m512d)b);
}
#else
RL_INLINE Vec<float> larger(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm256_max_ps((__m256)a, (__m256)b);
}
RL_INLINE Vec<double> larger(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm256_max_pd((__m256d)a, (__m256d)b);
}
RL_INLINE Vec<float> smaller(Vec<float> a, Vec<float> b) {
    return (Vec<float>)_mm256_min_ps((__m256)a, (__m256)b);
}
RL_INLINE Vec<double> smaller(Vec<double> a, Vec<double> b) {
    return (Vec<double>)_mm256_min_pd((__m256d)a, (__m256d)b);
}
#endif

namespace detail {

// Adds the halves of a 64-byte vector, the first step of a reduction. A 32-byte vector is returned unchanged.
#if defined(__AVX512F__)
RL_INLINE __m256 halves_added(Vec<float> v) {
    return (__m256)(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}
RL_INLINE __m256d halves_added(Vec<double> v) {
    return (__m256d)(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
}
#else
RL_INLINE __m256 halves_added(Vec<float> v) { return (__m256)v; }
RL_INLINE __m256d halves_added(Vec<double> v) { return (__m256d)v; }
#endif

}  // namespace detail

/// Returns the sum of all lanes. The order of the additions depends only on the number of lanes.
RL_INLINE float sum(Vec<float> v) {
    __m256 h = detail::halves_added(v);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
RL_INLINE double sum(Vec<double> v) {
    __m256d h = detail::halves_added(v);
    __m128d q = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}

/// Transposes a square matrix, given as kLanes vectors of kLanes lanes each.
template <class T>
RL_INLINE void transpose(Vec<T>* r) {
    transpose_square<kLanes<T>>(r);
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
