// Conversion between every pair of dtypes.
#include "cpu/cast.h"

#include "cpu/kernels/simd.h"
#include "ops/cast_element.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Convert vectors of float16 to float and back, with instructions that the compiler does not generate from the
// integer arithmetic of Half. These instructions preserve the payload of a NaN; the conversions of Half do not.
#if defined(__AVX512F__)
inline constexpr int64_t kHalvesAtOnce = 16;
inline void some(float* out, const Half* in) {
    _mm512_storeu_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in))));
}
inline void some(Half* out, const float* in) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm512_cvtps_ph(_mm512_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT));
}
#else
inline constexpr int64_t kHalvesAtOnce = 8;
inline void some(float* out, const Half* in) {
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
}
inline void some(Half* out, const float* in) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT));
}
#endif
template <class To, class From>
void cast_line(To* out, const From* in, int64_t n) {
    if constexpr ((std::is_same_v<To, Half> && std::is_same_v<From, float>) ||
                  (std::is_same_v<To, float> && std::is_same_v<From, Half>)) {
        int64_t i = 0;
        for (; i + kHalvesAtOnce <= n; i += kHalvesAtOnce) some(out + i, in + i);
        if (i == n) return;
        From rest[kHalvesAtOnce] = {};
        To converted[kHalvesAtOnce];
        __builtin_memcpy(rest, in + i, static_cast<size_t>(n - i) * sizeof(From));
        some(converted, rest);
        __builtin_memcpy(out + i, converted, static_cast<size_t>(n - i) * sizeof(To));
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) out[i] = cast_element<To>(in[i]);
    }
}

template <class To, class From>
void cast(char* const* data, const int64_t* s, int64_t n, const Scalar*) {
    if (s[0] == static_cast<int64_t>(sizeof(To)) && s[1] == static_cast<int64_t>(sizeof(From))) {
        cast_line(reinterpret_cast<To*>(data[0]), reinterpret_cast<const From*>(data[1]), n);
        return;
    }
    if constexpr (std::is_same_v<To, From>) {
        if (s[0] == static_cast<int64_t>(sizeof(To)) && s[1] == 0) {  // one value for all elements
            const To value = *reinterpret_cast<const To*>(data[1]);
            To* out = reinterpret_cast<To*>(data[0]);
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) out[i] = value;
            return;
        }
    }
    for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<To*>(data[0] + i * s[0]) =
            cast_element<To>(*reinterpret_cast<const From*>(data[1] + i * s[1]));
}

template <class To>
constexpr void row(CastTable::Loop* r) {
    r[0] = cast<To, bool>, r[1] = cast<To, uint8_t>, r[2] = cast<To, int8_t>, r[3] = cast<To, int16_t>;
    r[4] = cast<To, int32_t>, r[5] = cast<To, int64_t>, r[6] = cast<To, Half>, r[7] = cast<To, BFloat16>;
    r[8] = cast<To, float>, r[9] = cast<To, double>;
    r[10] = cast<To, uint16_t>, r[11] = cast<To, uint32_t>, r[12] = cast<To, uint64_t>;
    r[13] = cast<To, Complex<float>>, r[14] = cast<To, Complex<double>>;
}
constexpr CastTable make() {
    CastTable t{};
    row<bool>(t.loop[0]), row<uint8_t>(t.loop[1]), row<int8_t>(t.loop[2]), row<int16_t>(t.loop[3]);
    row<int32_t>(t.loop[4]), row<int64_t>(t.loop[5]), row<Half>(t.loop[6]), row<BFloat16>(t.loop[7]);
    row<float>(t.loop[8]), row<double>(t.loop[9]);
    row<uint16_t>(t.loop[10]), row<uint32_t>(t.loop[11]), row<uint64_t>(t.loop[12]);
    row<Complex<float>>(t.loop[13]), row<Complex<double>>(t.loop[14]);
    return t;
}
}  // namespace

const CastTable cast_loops_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
