// Computes Philox blocks in tiles. The words of a tile are stored by their position in the block, so that each step
// is a plain loop over blocks.
#include "cpu/random_fill.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int kTile = 64;  // blocks

struct Words {
    alignas(64) uint32_t word[4][kTile];

    void draw(PhiloxKey key, uint64_t first) {
#pragma omp simd
        for (int j = 0; j < kTile; ++j) {
            PhiloxBlock block = philox(key, first + static_cast<uint64_t>(j));
            word[0][j] = block.word[0];
            word[1][j] = block.word[1];
            word[2][j] = block.word[2];
            word[3][j] = block.word[3];
        }
    }
    [[gnu::always_inline]] uint64_t wide(int half, int j) const {
        return word[2 * half][j] | static_cast<uint64_t>(word[2 * half + 1][j]) << 32;
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
        for (int j = 0; j < kTile; ++j) {
            for (int k = 0; k < 4; ++k) values[4 * j + k] = uniform_float(w.word[k][j]);
        }
    });
}

void uniform_double_values(PhiloxKey key, int64_t begin, int64_t n, double* out) {
    fill<2>(key, begin, n, out, [](const Words& w, double* values) {
        for (int j = 0; j < kTile; ++j) {
            for (int k = 0; k < 2; ++k) values[2 * j + k] = uniform_double(w.wide(k, j));
        }
    });
}

void normal_float_values(PhiloxKey key, int64_t begin, int64_t n, float* out) {
    fill<4>(key, begin, n, out, [](const Words& w, float* values) {
        alignas(64) float apart[4][kTile];
        for (int k = 0; k < 4; k += 2) {
#pragma omp simd
            for (int j = 0; j < kTile; ++j) {
                NormalPair<float> pair = normal_pair(w.word[k][j], w.word[k + 1][j]);
                apart[k][j] = pair.first;
                apart[k + 1][j] = pair.second;
            }
        }
        for (int j = 0; j < kTile; ++j) {
            for (int k = 0; k < 4; ++k) values[4 * j + k] = apart[k][j];
        }
    });
}

void normal_double_values(PhiloxKey key, int64_t begin, int64_t n, double* out) {
    fill<2>(key, begin, n, out, [](const Words& w, double* values) {
        for (int j = 0; j < kTile; ++j) {
            NormalPair<double> pair = normal_pair(w.wide(0, j), w.wide(1, j));
            values[2 * j] = pair.first;
            values[2 * j + 1] = pair.second;
        }
    });
}

void integer_values(PhiloxKey key, int64_t begin, int64_t n, int64_t low, uint64_t range, int64_t* out) {
    if (range == 0 || range >> 32) {
        return fill<2>(key, begin, n, out, [=](const Words& w, int64_t* values) {
            for (int j = 0; j < kTile; ++j) {
                for (int k = 0; k < 2; ++k) {
                    const uint64_t value = uniform_below(w.wide(k, j), range);
                    values[2 * j + k] = static_cast<int64_t>(static_cast<uint64_t>(low) + value);
                }
            }
        });
    }
    // Computes the same upper half of the product by 32-bit multiplications, for which there are vector
    // instructions.
    fill<2>(key, begin, n, out, [=](const Words& w, int64_t* values) {
        for (int j = 0; j < kTile; ++j) {
            for (int k = 0; k < 2; ++k) {
                const uint64_t lower = w.word[2 * k][j] * range >> 32;
                const uint64_t value = (w.word[2 * k + 1][j] * range + lower) >> 32;
                values[2 * j + k] = static_cast<int64_t>(static_cast<uint64_t>(low) + value);
            }
        }
    });
}

void bernoulli_values(PhiloxKey key, int64_t begin, int64_t n, float p, uint8_t* out) {
    fill<4>(key, begin, n, out, [=](const Words& w, uint8_t* values) {
        for (int j = 0; j < kTile; ++j) {
            for (int k = 0; k < 4; ++k) values[4 * j + k] = uniform_float(w.word[k][j]) < p;
        }
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
        alignas(64) uint32_t words[4 * kTile];
        for (int j = 0; j < kTile; ++j)
            for (int k = 0; k < 4; ++k) words[4 * j + k] = w.word[k][j];
        uint8_t bytes[16 * kTile];
        __builtin_memcpy(bytes, words, sizeof bytes);
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
