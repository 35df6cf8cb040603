// Computes Philox blocks in tiles. The words of a tile are stored in the order of the blocks, which is the order of the
// values.
#include "cpu/random_fill.h"

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int kTile = 64;  // blocks

using Vec64 = Vec<uint64_t>;

// The products of the lower halves of the lanes.
RL_INLINE Vec64 multiply_lower(Vec64 a, Vec64 b) {
#if defined(__AVX512F__)
    return (Vec64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#else
    return (Vec64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#endif
}

// The numbers 0, 1, 2, ...
RL_INLINE Vec64 counting() {
    Vec64 v{};
    for (int i = 0; i < kLanes<uint64_t>; ++i) v[i] = static_cast<uint64_t>(i);
    return v;
}

struct Words {
    alignas(64) uint32_t word[4 * kTile];

    // Computes philox(key, first + j) for each block j of the tile. Each lane holds one word of a block in its lower half;
    // the upper half has no meaning. Two vectors of blocks are computed together, because the instructions of one wait for
    // each other.
    [[gnu::always_inline]] void draw(PhiloxKey key, uint64_t first) {
        constexpr int kBlocks = kLanes<uint64_t>, kTogether = 2;
        for (int j = 0; j < kTile; j += kTogether * kBlocks) {
            Vec64 c0[kTogether], c1[kTogether], c2[kTogether], c3[kTogether];
            for (int u = 0; u < kTogether; ++u) {
                c0[u] = counting() + (first + static_cast<uint64_t>(j + u * kBlocks));
                c1[u] = c0[u] >> 32;
                c2[u] = Vec64{} + key.offset;
                c3[u] = Vec64{} + (key.offset >> 32);
            }
            auto k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma GCC unroll 10
            for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 2
                for (int u = 0; u < kTogether; ++u) {
                    const Vec64 a = multiply_lower(c0[u], Vec64{} + uint64_t{kPhiloxMultiplier0});
                    const Vec64 b = multiply_lower(c2[u], Vec64{} + uint64_t{kPhiloxMultiplier2});
                    c0[u] = b >> 32 ^ (c1[u] ^ uint64_t{k0});
                    c2[u] = a >> 32 ^ (c3[u] ^ uint64_t{k1});
                    c1[u] = b;
                    c3[u] = a;
                }
                k0 += kPhiloxIncrementLow;
                k1 += kPhiloxIncrementHigh;
            }
            for (int u = 0; u < kTogether; ++u)
                put(word + 4 * (j + u * kBlocks), pairs(c0[u], c1[u]), pairs(c2[u], c3[u]));
        }
    }

    [[gnu::always_inline]] uint64_t wide(int i) const {
        uint64_t value;
        __builtin_memcpy(&value, word + 2 * i, sizeof value);
        return value;
    }

  private:
    RL_INLINE Vec64 pairs(Vec64 lower, Vec64 upper) { return (lower & 0xFFFFFFFF) | upper << 32; }

    // Stores the first and the second pair of words of each block.
    RL_INLINE void put(uint32_t* to, Vec64 first, Vec64 second) {
        constexpr int kBlocks = kLanes<uint64_t>;
        Vec64 front{}, back{};
        for (int i = 0; i < kBlocks; ++i) {
            front[i] = static_cast<uint64_t>(i / 2 + i % 2 * kBlocks);
            back[i] = front[i] + kBlocks / 2;
        }
        store(reinterpret_cast<uint64_t*>(to), __builtin_shuffle(first, second, front));
        store(reinterpret_cast<uint64_t*>(to) + kBlocks, __builtin_shuffle(first, second, back));
    }
};

// Writes values begin .. begin+n-1. `tile(words, values)` computes kPerBlock values from each block of a tile. A
// range may begin within a block, because the threads' ranges are not multiples of a block.
template <int kPerBlock, class T, class F>
[[gnu::always_inline]] inline void fill(PhiloxKey key, int64_t begin, int64_t n, T* out, F&& tile) {
    Words words;
    alignas(64) T values[kTile * kPerBlock];
    for (int64_t block = begin / kPerBlock, end = begin + n; block * kPerBlock < end; block += kTile) {
        words.draw(key, static_cast<uint64_t>(block));
        const int64_t first = block * kPerBlock, lo = first < begin ? begin : first;
        const int64_t hi = first + kTile * kPerBlock < end ? first + kTile * kPerBlock : end;
        tile(words, values);
        __builtin_memcpy(out + (lo - begin), values + (lo - first), sizeof(T) * static_cast<size_t>(hi - lo));
    }
}

void uniform_float_values(PhiloxKey key, int64_t begin, int64_t n, float* out) {
    fill<4>(key, begin, n, out, [](const Words& w, float* values) {
        for (int i = 0; i < 4 * kTile; ++i) values[i] = uniform_float(w.word[i]);
    });
}

void uniform_double_values(PhiloxKey key, int64_t begin, int64_t n, double* out) {
    fill<2>(key, begin, n, out, [](const Words& w, double* values) {
        for (int i = 0; i < 2 * kTile; ++i) values[i] = uniform_double(w.wide(i));
    });
}

// The numbers of a pair are computed in separate arrays, so that the loop over the pairs is vectorised without shuffles.
void normal_float_values(PhiloxKey key, int64_t begin, int64_t n, float* out) {
    fill<4>(key, begin, n, out, [](const Words& w, float* values) {
        alignas(64) float first[2 * kTile], second[2 * kTile];
#pragma omp simd
        for (int i = 0; i < 2 * kTile; ++i) {
            const NormalPair<float> pair = normal_pair(w.word[2 * i], w.word[2 * i + 1]);
            first[i] = pair.first;
            second[i] = pair.second;
        }
        for (int i = 0; i < 2 * kTile; ++i) {
            values[2 * i] = first[i];
            values[2 * i + 1] = second[i];
        }
    });
}

void normal_double_values(PhiloxKey key, int64_t begin, int64_t n, double* out) {
    fill<2>(key, begin, n, out, [](const Words& w, double* values) {
        for (int j = 0; j < kTile; ++j) {
            const NormalPair<double> pair = normal_pair(w.wide(2 * j), w.wide(2 * j + 1));
            values[2 * j] = pair.first;
            values[2 * j + 1] = pair.second;
        }
    });
}

void integer_values(PhiloxKey key, int64_t begin, int64_t n, int64_t low, uint64_t range, int64_t* out) {
    if (range == 0 || range >> 32) {
        return fill<2>(key, begin, n, out, [=](const Words& w, int64_t* values) {
            for (int i = 0; i < 2 * kTile; ++i)
                values[i] =
                    static_cast<int64_t>(static_cast<uint64_t>(low) + uniform_below(w.wide(i), range));
        });
    }
    // Computes the same upper half of the product by multiplications of 32 bits, for which there are vector instructions.
    fill<2>(key, begin, n, out, [=](const Words& w, int64_t* values) {
        const Vec64 factor = Vec64{} + range;
        for (int i = 0; i < 2 * kTile; i += kLanes<uint64_t>) {
            Vec64 bits;
            __builtin_memcpy(&bits, w.word + 2 * i, sizeof bits);
            const Vec64 value =
                (multiply_lower(bits >> 32, factor) + (multiply_lower(bits, factor) >> 32)) >> 32;
            store(reinterpret_cast<uint64_t*>(values) + i, value + static_cast<uint64_t>(low));
        }
    });
}

void bernoulli_values(PhiloxKey key, int64_t begin, int64_t n, float p, uint8_t* out) {
    fill<4>(key, begin, n, out, [=](const Words& w, uint8_t* values) {
        for (int i = 0; i < 4 * kTile; ++i) values[i] = uniform_float(w.word[i]) < p;
    });
}

// Each byte of a block determines an element. About one in 256 bytes equals the threshold's byte; its element is
// decided afterwards.
void mask_values(PhiloxKey key, int64_t begin, int64_t n, uint64_t threshold, uint8_t* out) {
    if (threshold == 0 || threshold >> 32) {
        __builtin_memset(out, threshold != 0, static_cast<size_t>(n));
        return;
    }
    const auto limit = static_cast<uint8_t>(threshold >> 24);
    fill<16>(key, begin, n, out, [=](const Words& w, uint8_t* values) {
        uint8_t bytes[16 * kTile];
        __builtin_memcpy(bytes, w.word, sizeof bytes);
        for (int i = 0; i < 16 * kTile; ++i) values[i] = bytes[i] == limit ? 2 : bytes[i] < limit;
    });
    const bool exact = (threshold & 0xFFFFFF) == 0;  // if exact, an element with a tie is never kept
    for (auto* at = out;
         (at = static_cast<uint8_t*>(__builtin_memchr(at, 2, static_cast<size_t>(out + n - at))));)
        *at = !exact && keeps_at_tie(key, static_cast<uint64_t>(begin + (at - out)), threshold);
}

template <class T>
void apply_mask(const uint8_t* mask, const T* in, T scale, T* out, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        const T scaled = in[i] * scale;  // computed for every element, so that there is no branch
        out[i] = mask[i] ? scaled : T(0);
    }
}

}  // namespace

extern const RandomKernels random_kernels_table;
const RandomKernels random_kernels_table{uniform_float_values, uniform_double_values, normal_float_values,
                                         normal_double_values, integer_values,        bernoulli_values,
                                         mask_values,          apply_mask<float>,     apply_mask<double>};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
