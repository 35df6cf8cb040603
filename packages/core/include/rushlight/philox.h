// Counter-based random numbers, the same bits on every device.
//
// Philox4x32-10: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC'11. Box-Muller: G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates",
// 1958.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "rushlight/kernel.h"

namespace rushlight {

// Note [Random values]
// A call owns the stream named by its PhiloxKey (seed, offset); block b of a stream is philox(key, b), four
// words. Value i of a call lies
//   32 bits wide (float32 and narrower):          in block i / 4, word i % 4;
//   64 bits wide (float64, integers of any range): in block i / 2, words 2 * (i % 2) and the next, low word
//   first; normals of float32:                            in block i / 4, element i % 2 of the pair made of
//   words
//                                                  2 * (i % 4 / 2) and the next;
//   normals of float64:                            in block i / 2, element i % 2 of the pair made of its two
//   64 bits.
// So it depends on (seed, offset, i) alone, whatever the threads, the vector width or the grid.

struct PhiloxBlock {
    uint32_t word[4];

    RL_HD uint64_t wide(int i) const { return word[2 * i] | static_cast<uint64_t>(word[2 * i + 1]) << 32; }
};

/// Block `index` of the stream `key`.
RL_HD inline PhiloxBlock philox(PhiloxKey key, uint64_t index) {
    uint32_t c0 = static_cast<uint32_t>(index), c1 = static_cast<uint32_t>(index >> 32);
    uint32_t c2 = static_cast<uint32_t>(key.offset), c3 = static_cast<uint32_t>(key.offset >> 32);
    uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
        uint64_t a = uint64_t{0xD2511F53} * c0, b = uint64_t{0xCD9E8D57} * c2;
        c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
        c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
        c1 = static_cast<uint32_t>(b);
        c3 = static_cast<uint32_t>(a);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return {{c0, c1, c2, c3}};
}

/// Uniform in [0, 1): multiples of 2^-24.
RL_HD inline float uniform_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// Uniform in [0, 1): multiples of 2^-53.
RL_HD inline double uniform_double(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// Uniform in {0, ..., range - 1}; range 0 stands for 2^64. The bias is at most range / 2^64.
RL_HD inline uint64_t uniform_below(uint64_t bits, uint64_t range) {
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

/// Two independent standard normals. Written in multiplications, fused multiply-adds and one square root,
/// which IEEE 754 defines to the last bit, instead of library functions: devices agree exactly. Error: below
/// 4 ulp.
RL_HD inline NormalPair<float> normal_pair(uint32_t a, uint32_t b) {
    // u in (0, 1]: all 32 bits, for the tails reach as far as u is small (6.7 standard deviations).
    float u = std::fma(static_cast<float>(a), 0x1p-32f, 0x1p-33f);

    // log(u) = e log(2) + log(1 + f), f in [-1/3, 1/3). Coefficients: Chebyshev fit of (log(1+f) - f + f^2/2)
    // / f^3.
    uint32_t bits;
    std::memcpy(&bits, &u, sizeof bits);
    int32_t exponent = static_cast<int32_t>(bits - 0x3F2AAAABu) >> 23;  // 2/3
    bits -= static_cast<uint32_t>(exponent) << 23;
    float m;
    std::memcpy(&m, &bits, sizeof m);
    float f = m - 1.0f, e = static_cast<float>(exponent);
    float p = 0.1133061739f;
    p = std::fma(p, f, -0.1242220058f);
    p = std::fma(p, f, 0.1091565479f);
    p = std::fma(p, f, -0.1228872161f);
    p = std::fma(p, f, 0.1429186718f);
    p = std::fma(p, f, -0.1667331625f);
    p = std::fma(p, f, 0.1999994835f);
    p = std::fma(p, f, -0.2499994419f);
    p = std::fma(p, f, 0.3333333333f);
    float square = f * f;
    float small = std::fma(square, std::fma(p, f, -0.5f), f);
    float log_u = std::fma(e, 0x1.62e43p-1f, std::fma(e, -0x1.05c61p-29f, small));
    float radius = std::sqrt(-2.0f * log_u);

    // The angle in half turns: t = quarter / 2 + r, r in [-1/4, 1/4], all of it exact.
    float t = static_cast<float>(b >> 8) * 0x1p-23f;
    int32_t quarter = static_cast<int32_t>(std::fma(t, 2.0f, 0.5f));
    float r = std::fma(static_cast<float>(quarter), -0.5f, t), r2 = r * r;
    float s = std::fma(-0.5890750992f, r2, 2.549766965f);
    s = std::fma(s, r2, -5.167707821f);
    s = std::fma(s, r2, 3.141592644f) * r;
    float c = std::fma(0.231328785f, r2, -1.335044448f);
    c = std::fma(c, r2, 4.058707258f);
    c = std::fma(c, r2, -4.934802163f);
    c = std::fma(c, r2, 1.0f);
    float cosine = quarter & 1 ? s : c, sine = quarter & 1 ? c : s;
    if ((quarter + 1) & 2) cosine = -cosine;
    if (quarter & 2) sine = -sine;
    return {radius * cosine, radius * sine};
}

/// The same in double precision, by the platform's log, sin and cos: devices agree to about 2 ulp.
RL_HD inline NormalPair<double> normal_pair(uint64_t a, uint64_t b) {
    double u = (static_cast<double>(a >> 11) + 0.5) * 0x1p-53;
    double radius = std::sqrt(-2.0 * std::log(u));
    double angle = uniform_double(b) * 6.283185307179586;
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace rushlight
