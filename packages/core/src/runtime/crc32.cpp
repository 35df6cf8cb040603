#include "runtime/crc32.h"

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>

namespace rushlight {
namespace {

// Note [Checksums by products of polynomials]
// The bits of a message are the coefficients of a polynomial over the field of two elements, with the first bit at the
// highest power of x. The checksum is the remainder of this polynomial modulo a polynomial P of degree 32. A part of
// the message that is followed by d bits contributes part * x^d, and may be replaced by any polynomial with the same
// remainder. So 16 bytes can be moved forward by d bits: two products of 64 by 32 bits are added to the 16 bytes at the
// new position. Four such chains run in parallel, which hides the latency of the products. The last 16 bytes, and
// messages that are too short, are processed with tables. Method: V. Gopal et al., "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction", 2009.
//
// The bits are mirrored: the lowest bit of a word has the highest power. Therefore the product of two words is one bit
// too low. The constants compensate for this.

constexpr uint32_t kPolynomial = 0xEDB88320;

constexpr uint32_t times_x(uint32_t v) { return v >> 1 ^ (v & 1 ? kPolynomial : 0); }

// Returns the remainder of x^n, mirrored and shifted by one bit.
constexpr int64_t power_of_x(int n) {
    uint32_t v = 0x80000000;
    for (; n > 0; --n) v = times_x(v);
    return static_cast<int64_t>(v) << 1;
}

constexpr size_t kWord = sizeof(uint64_t);
using Tables = std::array<std::array<uint32_t, 256>, kWord>;

// Element k holds the remainders of single bytes that are followed by k bytes.
constexpr Tables make_tables() {
    Tables tables{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t v = i;
        for (int bit = 0; bit < 8; ++bit) v = times_x(v);
        tables[0][i] = v;
    }
    for (size_t k = 1; k < kWord; ++k)
        for (size_t i = 0; i < 256; ++i) {
            const uint32_t v = tables[k - 1][i];
            tables[k][i] = v >> 8 ^ tables[0][v & 255];
        }
    return tables;
}

constexpr Tables kTables = make_tables();

uint32_t by_tables(uint32_t state, const std::byte* p, size_t size) {
    for (; size >= kWord; size -= kWord, p += kWord) {
        uint64_t word;
        std::memcpy(&word, p, kWord);
        word ^= state;
        state = 0;
        for (size_t k = 0; k < kWord; ++k) state ^= kTables[kWord - 1 - k][word >> 8 * k & 255];
    }
    for (; size > 0; --size, ++p) state = state >> 8 ^ kTables[0][(state ^ static_cast<uint32_t>(*p)) & 255];
    return state;
}

constexpr size_t kLanes = 4, kLane = sizeof(__m128i), kBlock = kLanes * kLane;

// Marks functions with instructions that the compiler's baseline lacks. These functions are called only if the
// processor has the instructions.
#define RL_PRODUCTS __attribute__((target("pclmul")))

RL_PRODUCTS inline __m128i load(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// Multiplies 16 bytes, as a polynomial, by the power of x that the constants encode. The result replaces these bytes
// that many bits later in the message.
RL_PRODUCTS inline __m128i moved(__m128i bytes, __m128i constants) {
    return _mm_xor_si128(_mm_clmulepi64_si128(bytes, constants, 0x00),
                         _mm_clmulepi64_si128(bytes, constants, 0x11));
}

// Returns the checksum of at least kBlock bytes.
RL_PRODUCTS uint32_t by_products(uint32_t state, const std::byte* p, size_t size) {
    constexpr int64_t block_powers[] = {power_of_x(8 * kBlock - 32), power_of_x(8 * kBlock + 32)};
    constexpr int64_t lane_powers[] = {power_of_x(8 * kLane - 32), power_of_x(8 * kLane + 32)};
    const __m128i block = _mm_set_epi64x(block_powers[0], block_powers[1]);
    const __m128i lane = _mm_set_epi64x(lane_powers[0], lane_powers[1]);
    __m128i lanes[kLanes];
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = load(p + i * kLane);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(state)));
    for (p += kBlock, size -= kBlock; size >= kBlock; p += kBlock, size -= kBlock)
        for (size_t i = 0; i < kLanes; ++i)
            lanes[i] = _mm_xor_si128(moved(lanes[i], block), load(p + i * kLane));
    for (size_t i = 1; i < kLanes; ++i) lanes[i] = _mm_xor_si128(moved(lanes[i - 1], lane), lanes[i]);
    std::byte left[kLane];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(left), lanes[kLanes - 1]);
    return by_tables(by_tables(0, left, kLane), p, size);
}

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
    static_assert(std::endian::native == std::endian::little);
    static const bool has_products = __builtin_cpu_supports("pclmul");
    const auto* bytes = static_cast<const std::byte*>(data);
    return ~(size >= kBlock && has_products ? by_products(~crc, bytes, size) : by_tables(~crc, bytes, size));
}

}  // namespace rushlight
