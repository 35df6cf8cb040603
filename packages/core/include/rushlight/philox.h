// Counter-based random numbers, the same bits on every device.
//
// Philox4x32-10: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC'11. Box-Muller: G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates",
// 1958.
#pragma once

#include <cstdint>
#include <cstring>

#include "rushlight/kernel.h"

// The functions are always inlined. Files that are compiled for several CPU capabilities include this header. The
// linker would keep only one copy of an ordinary inline function, compiled for one of the capabilities.
#define RL_PHILOX RL_HD inline

namespace rushlight {

// Note [Random values]
// Each call of a random operator uses a separate stream, which is identified by a PhiloxKey (seed, offset). Block b of
// a stream consists of the four 32-bit words philox(key, b). The position of value i of a call depends on the type of
// the values:
// * values of 32 bits (float32 and narrower): block i / 4, word i % 4;
// * values of 64 bits (float64, integers of any range): block i / 2, words 2 * (i % 2) and the next, low word first;
// * normals of float32: block i / 4, element i % 2 of the pair computed from words 2 * (i % 4 / 2) and the next;
// * normals of float64: block i / 2, element i % 2 of the pair computed from the block's two 64-bit numbers.
// So a value depends only on seed, offset and i, and not on the number of threads, the vector width or the grid.

struct PhiloxBlock {
    uint32_t word[4];

    [[gnu::always_inline]] RL_HD uint64_t wide(int i) const {
        return word[2 * i] | static_cast<uint64_t>(word[2 * i + 1]) << 32;
    }
};

// The constants of a round: the multipliers of words 0 and 2, and the increments of the lower and the upper half of the key.
inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53, kPhiloxMultiplier2 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxIncrementLow = 0x9E3779B9, kPhiloxIncrementHigh = 0xBB67AE85;

/// Returns block `index` of the stream `key`.
RL_PHILOX PhiloxBlock philox(PhiloxKey key, uint64_t index) {
    uint32_t c0 = static_cast<uint32_t>(index), c1 = static_cast<uint32_t>(index >> 32);
    uint32_t c2 = static_cast<uint32_t>(key.offset), c3 = static_cast<uint32_t>(key.offset >> 32);
    uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
        uint64_t a = uint64_t{kPhiloxMultiplier0} * c0, b = uint64_t{kPhiloxMultiplier2} * c2;
        c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
        c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
        c1 = static_cast<uint32_t>(b);
        c3 = static_cast<uint32_t>(a);
        k0 += kPhiloxIncrementLow;
        k1 += kPhiloxIncrementHigh;
    }
    return {{c0, c1, c2, c3}};
}

/// Returns a uniform number in [0, 1), a multiple of 2^-24.
RL_PHILOX float uniform_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// Returns bits >> 11 as a double. Only 32-bit integers are converted, because not every vector unit converts 64-bit
/// integers.
RL_PHILOX double upper_53_bits(uint64_t bits) {
    double high = static_cast<int32_t>(bits >> 38), low = static_cast<int32_t>(bits >> 11 & 0x7FFFFFF);
    return __builtin_fma(high, 0x1p27, low);
}

// Note [Random masks]
// A mask stores for each element whether it is kept. The probability is `threshold` / 2^32. Element i has a random
// number of 32 bits and is kept if that number is below the threshold. The highest 8 bits of the number are byte i % 16
// of block i / 16, where the bytes of each word are counted from the lowest. In 255 of 256 cases these bits decide. If
// they equal the highest 8 bits of the threshold, the other 24 bits of the number are the highest 24 bits of word 0 of
// block 2^63 + i.

/// The threshold of a probability, an integer from 0 to 2^32.
inline uint64_t mask_threshold(double probability) {
    return static_cast<uint64_t>(__builtin_rint(probability * 0x1p32));
}

/// Whether element `i` is kept if the highest 8 bits of its random number equal those of the threshold.
RL_PHILOX bool keeps_at_tie(PhiloxKey key, uint64_t i, uint64_t threshold) {
    return philox(key, uint64_t{1} << 63 | i).word[0] >> 8 < (threshold & 0xFFFFFF);
}

/// Whether element `i` is kept.
RL_PHILOX bool mask_keeps(PhiloxKey key, uint64_t i, uint64_t threshold) {
    const uint32_t high = philox(key, i / 16).word[i % 16 / 4] >> 8 * (i % 4) & 0xFF;
    const uint64_t limit = threshold >> 24;  // 256 if all elements are kept
    return high == limit ? keeps_at_tie(key, i, threshold) : high < limit;
}

/// Returns a uniform number in [0, 1), a multiple of 2^-53.
RL_PHILOX double uniform_double(uint64_t bits) { return upper_53_bits(bits) * 0x1p-53; }

/// Returns a uniform integer in {0, ..., range - 1}; range 0 stands for 2^64. The bias is at most range / 2^64.
RL_PHILOX uint64_t uniform_below(uint64_t bits, uint64_t range) {
    if (range == 0) return bits;
#if defined(__CUDA_ARCH__)
    return __umul64hi(bits, range);
#else
    return static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * range >> 64);
#endif
}

template <class T>
struct NormalPair {
    T first, second;
};

// Note [Exact normals]
// Box-Muller, written only with basic operations of IEEE 754 (fused multiply-adds, one square root, one division)
// instead of library functions, so that every device and compiler computes the same bits. The polynomials are Chebyshev
// fits made for this file. The error is below 4 ulp.

namespace detail {

RL_PHILOX float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RL_PHILOX double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// Evaluates a polynomial at x. The highest coefficient comes first.
template <class T, class... Rest>
RL_PHILOX T horner(T x, T sum, Rest... rest) {
    ((sum = fused(sum, x, rest)), ...);
    return sum;
}

// u = 2^e m with m in [2/3, 4/3), f = m - 1; log(u) = e log(2) + log(1 + f), log(2) in two parts.

RL_PHILOX float log_of_uniform(float u) {
    uint32_t bits;
    std::memcpy(&bits, &u, sizeof bits);
    int32_t exponent = static_cast<int32_t>(bits - 0x3F2AAAABu) >> 23;
    bits -= static_cast<uint32_t>(exponent) << 23;
    float m;
    std::memcpy(&m, &bits, sizeof m);
    float e = static_cast<float>(exponent), f = m - 1.0f;
    // log(1 + f) = f - f^2 / 2 + f^3 p(f)
    float p = horner(f, 0.1133061739f, -0.1242220058f, 0.1091565479f, -0.1228872161f, 0.1429186718f,
                     -0.1667331625f, 0.1999994835f, -0.2499994419f, 0.3333333333f);
    float small = fused(f * f, fused(p, f, -0.5f), f);
    return fused(e, 0x1.62e43p-1f, fused(e, -0x1.05c61p-29f, small));
}

RL_PHILOX double log_of_uniform(double u) {
    uint64_t bits;
    std::memcpy(&bits, &u, sizeof bits);
    int32_t exponent = (static_cast<int32_t>(bits >> 32) - 0x3FE55555) >> 20;
    bits -= static_cast<uint64_t>(static_cast<int64_t>(exponent)) << 52;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    // log(1 + f) = 2 atanh(s) = 2 s + 2 s^3 p(s^2), s = f / (2 + f)
    double e = exponent, s = (m - 1.0) / (m + 1.0), z = s * s, twice = s + s;
    double p = horner(z, 0x1.fcd9cadda7405p-5, 0x1.dbda7a4188a45p-5, 0x1.1130d743d511bp-4,
                      0x1.3b12ef4d5d8c1p-4, 0x1.745d19fac65e7p-4, 0x1.c71c71c1b0507p-4, 0x1.249249249500bp-3,
                      0x1.9999999999989p-3, 0x1.5555555555555p-2);
    return fused(e, 0x1.62e42fefa39efp-1, fused(e, 0x1.abc9e3b39803fp-56, fused(twice * z, p, twice)));
}

// sin and cos of pi r, r in [-1/4, 1/4].

RL_PHILOX float sin_pi(float r) {
    return horner(r * r, -0.5890750992f, 2.549766965f, -5.167707821f, 3.141592644f) * r;
}
RL_PHILOX float cos_pi(float r) {
    return horner(r * r, 0.231328785f, -1.335044448f, 4.058707258f, -4.934802163f, 1.0f);
}
RL_PHILOX double sin_pi(double r) {
    return horner(r * r, -0x1.6cc577dadd922p-16, 0x1.e8f036bcd3237p-12, -0x1.e3074d2614b2dp-8,
                  0x1.50783486facaap-4, -0x1.32d2cce62b872p-1, 0x1.466bc6775aae1p+1, -0x1.4abbce625be53p+2,
                  0x1.921fb54442d18p+1) *
           r;
}
RL_PHILOX double cos_pi(double r) {
    return horner(r * r, -0x1.b2f3eb054afcdp-14, 0x1.f9ce245cada0bp-10, -0x1.a6d1eef479be1p-6,
                  0x1.e1f5068688d5bp-3, -0x1.55d3c7e3cb241p+0, 0x1.03c1f081b5ac0p+2, -0x1.3bd3cc9be45dep+2,
                  1.0);
}

/// Returns the point at the angle pi * `half_turns` on the circle of the given radius around the origin. `half_turns`
/// is in [0, 2). The reduction of the angle to a quarter turn is exact.
template <class T>
RL_PHILOX NormalPair<T> on_circle(T radius, T half_turns) {
    int32_t quarter = static_cast<int32_t>(fused(half_turns, T(2), T(0.5)));
    T r = fused(static_cast<T>(quarter), T(-0.5), half_turns);
    T sine = sin_pi(r), cosine = cos_pi(r);
    T x = quarter & 1 ? sine : cosine, y = quarter & 1 ? cosine : sine;
    x = (quarter + 1) & 2 ? -x : x;
    y = quarter & 2 ? -y : y;
    return {radius * x, radius * y};
}

}  // namespace detail

/// Returns two independent standard normal numbers: Note [Exact normals].
RL_PHILOX NormalPair<float> normal_pair(uint32_t a, uint32_t b) {
    // u lies in (0, 1] and uses all 32 bits. Its smallest value limits the results to 6.7 standard deviations.
    float u = detail::fused(static_cast<float>(a), 0x1p-32f, 0x1p-33f);
    return detail::on_circle(__builtin_sqrtf(-2.0f * detail::log_of_uniform(u)),
                             static_cast<float>(b >> 8) * 0x1p-23f);
}
RL_PHILOX NormalPair<double> normal_pair(uint64_t a, uint64_t b) {
    double u = detail::fused(upper_53_bits(a), 0x1p-53, 0x1p-54);
    return detail::on_circle(__builtin_sqrt(-2.0 * detail::log_of_uniform(u)), upper_53_bits(b) * 0x1p-52);
}

}  // namespace rushlight

#undef RL_PHILOX
