#include "cpu/masking_kernels.h"

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int kMaxDims = 64;

struct Pair {
    uint64_t a, b;
};

// --- from elements to bits ---

#if defined(__AVX512F__)
RL_INLINE uint64_t bits_of(const uint8_t* x, uint8_t) {
    const __m512i v = _mm512_loadu_si512(x);
    return _mm512_test_epi8_mask(v, v);
}
RL_INLINE uint64_t bits_of(const uint16_t* x, uint16_t counted) {
    const __m512i by = _mm512_set1_epi16(static_cast<short>(counted));
    const uint64_t low = _mm512_test_epi16_mask(_mm512_loadu_si512(x), by);
    return low | static_cast<uint64_t>(_mm512_test_epi16_mask(_mm512_loadu_si512(x + 32), by)) << 32;
}
RL_INLINE uint64_t bits_of(const uint32_t* x, uint32_t counted) {
    const __m512i by = _mm512_set1_epi32(static_cast<int>(counted));
    uint64_t word = 0;
    for (int i = 0; i < 4; ++i)
        word |= static_cast<uint64_t>(_mm512_test_epi32_mask(_mm512_loadu_si512(x + 16 * i), by)) << 16 * i;
    return word;
}
RL_INLINE uint64_t bits_of(const uint64_t* x, uint64_t counted) {
    const __m512i by = _mm512_set1_epi64(static_cast<long long>(counted));
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i)
        word |= static_cast<uint64_t>(_mm512_test_epi64_mask(_mm512_loadu_si512(x + 8 * i), by)) << 8 * i;
    return word;
}
#else
RL_INLINE __m256i part(const void* x, int i) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(x) + i);
}
RL_INLINE uint64_t bits_of(const uint8_t* x, uint8_t) {
    uint64_t zeros = 0;
    for (int i = 0; i < 2; ++i) {
        const __m256i is = _mm256_cmpeq_epi8(part(x, i), _mm256_setzero_si256());
        zeros |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(is))) << 32 * i;
    }
    return ~zeros;
}
RL_INLINE uint64_t bits_of(const uint16_t* x, uint16_t counted) {
    const __m256i by = _mm256_set1_epi16(static_cast<short>(counted)), zero = _mm256_setzero_si256();
    uint64_t zeros = 0;
    for (int i = 0; i < 2; ++i) {
        const __m256i a = _mm256_cmpeq_epi16(_mm256_and_si256(part(x, 2 * i), by), zero),
                      b = _mm256_cmpeq_epi16(_mm256_and_si256(part(x, 2 * i + 1), by), zero);
        const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xD8);
        zeros |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(both))) << 32 * i;
    }
    return ~zeros;
}
RL_INLINE uint64_t bits_of(const uint32_t* x, uint32_t counted) {
    const __m256i by = _mm256_set1_epi32(static_cast<int>(counted)), zero = _mm256_setzero_si256();
    uint64_t zeros = 0;
    for (int i = 0; i < 8; ++i) {
        const __m256i is = _mm256_cmpeq_epi32(_mm256_and_si256(part(x, i), by), zero);
        zeros |= static_cast<uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(is))) << 8 * i;
    }
    return ~zeros;
}
RL_INLINE uint64_t bits_of(const uint64_t* x, uint64_t counted) {
    const __m256i by = _mm256_set1_epi64x(static_cast<long long>(counted)), zero = _mm256_setzero_si256();
    uint64_t zeros = 0;
    for (int i = 0; i < 16; ++i) {
        const __m256i is = _mm256_cmpeq_epi64(_mm256_and_si256(part(x, i), by), zero);
        zeros |= static_cast<uint64_t>(_mm256_movemask_pd(_mm256_castsi256_pd(is))) << 4 * i;
    }
    return ~zeros;
}
#endif
RL_INLINE uint64_t bits_of(const Pair* x, Pair counted) {
    uint64_t word = 0;
    for (int i = 0; i < 64; ++i)
        word |= static_cast<uint64_t>(((x[i].a & counted.a) | (x[i].b & counted.b)) != 0) << i;
    return word;
}

// Selects elements of which a bit in the mask `counted` is set. For floating-point numbers the mask excludes the sign
// bit, so that -0 counts as zero.
template <class T>
RL_INLINE int64_t all_bits(uint64_t* words, const void* in, int64_t n, T counted) {
    const T* x = static_cast<const T*>(in);
    int64_t count = 0, i = 0;
    for (; i + 64 <= n; i += 64) {
        const uint64_t word = bits_of(x + i, counted);
        words[i / 64] = word;
        count += __builtin_popcountll(word);
    }
    if (i < n) {
        T rest[64] = {};
        for (int64_t j = 0; i + j < n; ++j) rest[j] = x[i + j];
        const uint64_t word = bits_of(rest, counted);
        words[i / 64] = word;
        count += __builtin_popcountll(word);
    }
    return count;
}
int64_t bits(uint64_t* words, const void* in, int64_t n, DType dtype) {
    constexpr uint64_t kFloats = 0x7fffffff7fffffff, kDouble = ~uint64_t{0} >> 1;
    switch (dtype) {
        case DType::Float16:
        case DType::BFloat16: return all_bits<uint16_t>(words, in, n, 0x7fff);
        case DType::Float32: return all_bits<uint32_t>(words, in, n, 0x7fffffff);
        case DType::Float64: return all_bits<uint64_t>(words, in, n, kDouble);
        case DType::Complex64: return all_bits<uint64_t>(words, in, n, kFloats);
        case DType::Complex128: return all_bits<Pair>(words, in, n, Pair{kDouble, kDouble});
        default: break;
    }
    switch (kItemSize[static_cast<int>(dtype)]) {
        case 1: return all_bits<uint8_t>(words, in, n, 0xff);
        case 2: return all_bits<uint16_t>(words, in, n, 0xffff);
        case 4: return all_bits<uint32_t>(words, in, n, ~uint32_t{0});
        default: return all_bits<uint64_t>(words, in, n, ~uint64_t{0});
    }
}

// Calls one(index) for each selected element, in order.
template <class One>
RL_INLINE void each_bit(const uint64_t* words, int64_t n, One one) {
    for (int64_t i = 0; i < n; i += 64)
        for (uint64_t word = words[i / 64]; word; word &= word - 1) one(i + __builtin_ctzll(word));
}

// --- selected elements in adjacent memory ---

// Vector code for groups of `kSize` elements. kSize is 0 if there is no vector code. `compress` copies the `count`
// elements whose bits are set in `chosen` to adjacent memory, and `expand` copies adjacent elements to these positions.
template <class T>
struct Group {
    static constexpr int kSize = 0;
};
#if defined(__AVX512F__)
RL_INLINE __mmask16 first16(int n) { return static_cast<__mmask16>((1u << n) - 1); }
template <>
struct Group<uint8_t> {
    static constexpr int kSize = 16;
    RL_INLINE void compress(uint8_t* out, const uint8_t*, const uint8_t* in, unsigned chosen, int count) {
        const __m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
        _mm512_mask_cvtepi32_storeu_epi8(out, first16(count),
                                         _mm512_maskz_compress_epi32(static_cast<__mmask16>(chosen), v));
    }
    RL_INLINE void expand(uint8_t* out, const uint8_t* in, unsigned chosen, int count) {
        const __m128i v = _mm_maskz_loadu_epi8(first16(count), in);
        const __m512i spread =
            _mm512_maskz_expand_epi32(static_cast<__mmask16>(chosen), _mm512_cvtepu8_epi32(v));
        _mm512_mask_cvtepi32_storeu_epi8(out, static_cast<__mmask16>(chosen), spread);
    }
};
template <>
struct Group<uint16_t> {
    static constexpr int kSize = 16;
    RL_INLINE void compress(uint16_t* out, const uint16_t*, const uint16_t* in, unsigned chosen, int count) {
        const __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
        _mm512_mask_cvtepi32_storeu_epi16(out, first16(count),
                                          _mm512_maskz_compress_epi32(static_cast<__mmask16>(chosen), v));
    }
    RL_INLINE void expand(uint16_t* out, const uint16_t* in, unsigned chosen, int count) {
        const __m256i v = _mm256_maskz_loadu_epi16(first16(count), in);
        const __m512i spread =
            _mm512_maskz_expand_epi32(static_cast<__mmask16>(chosen), _mm512_cvtepu16_epi32(v));
        _mm512_mask_cvtepi32_storeu_epi16(out, static_cast<__mmask16>(chosen), spread);
    }
};
template <>
struct Group<uint32_t> {
    static constexpr int kSize = 16;
    RL_INLINE void compress(uint32_t* out, const uint32_t*, const uint32_t* in, unsigned chosen, int count) {
        const __m512i v = _mm512_maskz_compress_epi32(static_cast<__mmask16>(chosen), _mm512_loadu_si512(in));
        _mm512_mask_storeu_epi32(out, first16(count), v);
    }
    RL_INLINE void expand(uint32_t* out, const uint32_t* in, unsigned chosen, int count) {
        const __m512i v = _mm512_maskz_loadu_epi32(first16(count), in);
        const auto lanes = static_cast<__mmask16>(chosen);
        _mm512_mask_storeu_epi32(out, lanes, _mm512_maskz_expand_epi32(lanes, v));
    }
};
template <>
struct Group<uint64_t> {
    static constexpr int kSize = 8;
    RL_INLINE void compress(uint64_t* out, const uint64_t*, const uint64_t* in, unsigned chosen, int count) {
        const __m512i v = _mm512_maskz_compress_epi64(static_cast<__mmask8>(chosen), _mm512_loadu_si512(in));
        _mm512_mask_storeu_epi64(out, static_cast<__mmask8>(first16(count)), v);
    }
    RL_INLINE void expand(uint64_t* out, const uint64_t* in, unsigned chosen, int count) {
        const __m512i v = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(first16(count)), in);
        const auto lanes = static_cast<__mmask8>(chosen);
        _mm512_mask_storeu_epi64(out, lanes, _mm512_maskz_expand_epi64(lanes, v));
    }
};
#else
// Returns a mask of the first `n` of eight lanes.
RL_INLINE __m256i first8(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
// For each choice of eight lanes, a byte for each lane. `chosen` holds the numbers of the chosen lanes without gaps, and
// `rank` holds at each chosen lane the number of chosen lanes before it. Tables, because the instructions that compute these
// bytes, pdep and pext, take hundreds of cycles on some processors.
struct LanesOfEight {
    uint64_t chosen[256] = {}, rank[256] = {};

    constexpr LanesOfEight() {
        for (unsigned bits = 0; bits < 256; ++bits) {
            uint64_t count = 0;
            for (unsigned lane = 0; lane < 8; ++lane) {
                if (!(bits >> lane & 1)) continue;
                chosen[bits] |= uint64_t{lane} << 8 * count;
                rank[bits] |= count << 8 * lane;
                ++count;
            }
        }
    }
};
constexpr LanesOfEight kLanesOfEight;

RL_INLINE __m256i widen(uint64_t bytes) {
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes)));
}
// Returns a mask of the chosen lanes.
RL_INLINE __m256i lanes8(unsigned chosen) {
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(chosen)), bit), bit);
}
RL_INLINE void store8(void* out, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(out), v); }

// Stores with a mask are slow on some processors. Where the memory suffices, whole vectors are stored: elements behind the
// chosen ones are overwritten by the next group.
template <>
struct Group<uint32_t> {
    static constexpr int kSize = 8;
    RL_INLINE void compress(uint32_t* out, const uint32_t* end, const uint32_t* in, unsigned chosen,
                            int count) {
        const __m256i v = _mm256_permutevar8x32_epi32(part(in, 0), widen(kLanesOfEight.chosen[chosen]));
        if (end - out >= 8) store8(out, v);
        else _mm256_maskstore_epi32(reinterpret_cast<int*>(out), first8(count), v);
    }
    RL_INLINE void expand(uint32_t* out, const uint32_t* in, unsigned chosen, int count) {
        const __m256i v = _mm256_maskload_epi32(reinterpret_cast<const int*>(in), first8(count));
        const __m256i spread = _mm256_permutevar8x32_epi32(v, widen(kLanesOfEight.rank[chosen]));
        store8(out, _mm256_blendv_epi8(part(out, 0), spread, lanes8(chosen)));
    }
};
template <>
struct Group<uint64_t> {  // processed as twice as many lanes of half the width
    static constexpr int kSize = 4;
    // Repeats each of four bits.
    RL_INLINE unsigned twice(unsigned chosen) {
        const unsigned apart = (chosen | chosen << 2) & 0x33, single = (apart | apart << 1) & 0x55;
        return single * 3;
    }
    RL_INLINE void compress(uint64_t* out, const uint64_t* end, const uint64_t* in, unsigned chosen,
                            int count) {
        Group<uint32_t>::compress(reinterpret_cast<uint32_t*>(out), reinterpret_cast<const uint32_t*>(end),
                                  reinterpret_cast<const uint32_t*>(in), twice(chosen), 2 * count);
    }
    RL_INLINE void expand(uint64_t* out, const uint64_t* in, unsigned chosen, int count) {
        Group<uint32_t>::expand(reinterpret_cast<uint32_t*>(out), reinterpret_cast<const uint32_t*>(in),
                                twice(chosen), 2 * count);
    }
};
#endif

// Calls each(position, chosen, count) for the groups of all complete words that are not zero. Returns the number of
// elements in complete words.
template <int kSize, class Each>
RL_INLINE int64_t each_group(const uint64_t* words, int64_t n, Each each) {
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        const uint64_t word = words[i / 64];
        if (word == 0) continue;
        for (int g = 0; g < 64; g += kSize) {
            const auto chosen = static_cast<unsigned>(word >> g & ((uint64_t{1} << kSize) - 1));
            each(i + g, chosen, __builtin_popcount(chosen));
        }
    }
    return i;
}

// Returns the number of selected elements.
RL_INLINE int64_t count_of(const uint64_t* words, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += 64) count += __builtin_popcountll(words[i / 64]);
    return count;
}

template <class T>
void compress_elements(T* out, const T* in, const uint64_t* words, int64_t n) {
    int64_t i = 0;
    if constexpr (Group<T>::kSize > 0) {
        const T* const end = out + count_of(words, n);
        i = each_group<Group<T>::kSize>(words, n, [&](int64_t at, unsigned chosen, int count) {
            Group<T>::compress(out, end, in + at, chosen, count);
            out += count;
        });
    }
    each_bit(words + i / 64, n - i, [&](int64_t at) { *out++ = in[i + at]; });
}
template <class T>
void expand_elements(T* out, const T* in, const uint64_t* words, int64_t n) {
    int64_t i = 0;
    if constexpr (Group<T>::kSize > 0)
        i = each_group<Group<T>::kSize>(words, n, [&](int64_t at, unsigned chosen, int count) {
            Group<T>::expand(out + at, in, chosen, count);
            in += count;
        });
    each_bit(words + i / 64, n - i, [&](int64_t at) { out[i + at] = *in++; });
}

void compress(void* out, const void* in, const uint64_t* words, int64_t n, size_t itemsize) {
    const auto as = [&]<class T>(T) {
        compress_elements(static_cast<T*>(out), static_cast<const T*>(in), words, n);
    };
    switch (itemsize) {
        case 1: return as(uint8_t());
        case 2: return as(uint16_t());
        case 4: return as(uint32_t());
        case 8: return as(uint64_t());
        default: return as(Pair());
    }
}
void expand(void* out, const void* in, const uint64_t* words, int64_t n, size_t itemsize) {
    const auto as = [&]<class T>(T) {
        expand_elements(static_cast<T*>(out), static_cast<const T*>(in), words, n);
    };
    switch (itemsize) {
        case 1: return as(uint8_t());
        case 2: return as(uint16_t());
        case 4: return as(uint32_t());
        case 8: return as(uint64_t());
        default: return as(Pair());
    }
}

// --- coordinates ---

// Writes the coordinates of selected elements for a shape of one dimension.
void numbers(int64_t* out, const uint64_t* words, int64_t first, int64_t n) {
    int64_t i = 0;
#if defined(__AVX512F__)
    const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    i = each_group<8>(words, n, [&](int64_t at, unsigned chosen, int count) {
        const __m512i all = _mm512_add_epi64(_mm512_set1_epi64(first + at), lanes);
        const __m512i v = _mm512_maskz_compress_epi64(static_cast<__mmask8>(chosen), all);
        _mm512_mask_storeu_epi64(out, static_cast<__mmask8>(first16(count)), v);
        out += count;
    });
#else
    const int64_t* const end = out + count_of(words, n);
    i = each_group<8>(words, n, [&](int64_t at, unsigned chosen, int count) {
        const __m256i lanes = widen(kLanesOfEight.chosen[chosen]), start = _mm256_set1_epi64x(first + at);
        alignas(32) int64_t group[8];
        int64_t* const to = end - out >= 8 ? out : group;
        store8(to, _mm256_add_epi64(start, _mm256_cvtepu32_epi64(_mm256_castsi256_si128(lanes))));
        store8(to + 4, _mm256_add_epi64(start, _mm256_cvtepu32_epi64(_mm256_extracti128_si256(lanes, 1))));
        if (to == group) __builtin_memcpy(out, group, sizeof(int64_t) * static_cast<size_t>(count));
        out += count;
    });
#endif
    each_bit(words + i / 64, n - i, [&](int64_t at) { *out++ = first + i + at; });
}

// Returns the 64 bits from bit `i` on.
RL_INLINE uint64_t bits_from(const uint64_t* words, int64_t i, int64_t n) {
    const int64_t word = i / 64, shift = i % 64;
    const uint64_t low = words[word] >> shift;
    return shift == 0 || (word + 1) * 64 >= n ? low : low | words[word + 1] << (64 - shift);
}

// kDims is the number of dimensions, or 0 if it is not a constant.
template <int kDims>
void coordinates_of(int64_t* out, int64_t row, int64_t column, const uint64_t* words, int64_t first,
                    int64_t n, const int64_t* sizes, int ndim) {
    const int dims = kDims ? kDims : ndim;
    int64_t position[kMaxDims];
    int64_t rest = first;
    for (int d = dims - 1; d >= 0; --d) {
        position[d] = rest % sizes[d];
        rest /= sizes[d];
    }
    const int64_t width = sizes[dims - 1];
    for (int64_t i = 0; i < n;) {
        // Processes elements up to the end of the row.
        const int64_t begin = position[dims - 1], end = width - begin < n - i ? width : begin + n - i;
        for (int64_t last = begin; last < end; last += 64) {
            uint64_t word = bits_from(words, i + last - begin, n);
            if (end - last < 64) word &= (uint64_t{1} << (end - last)) - 1;
            if (row == 1) {
                const int count = __builtin_popcountll(word);
                for (int d = 0; d + 1 < dims; ++d)
                    for (int k = 0; k < count; ++k) out[d * column + k] = position[d];
                for (int64_t* to = out + (dims - 1) * column; word; word &= word - 1)
                    *to++ = last + __builtin_ctzll(word);
                out += count;
                continue;
            }
            for (; word; word &= word - 1, out += row) {
                for (int d = 0; d + 1 < dims; ++d) out[d * column] = position[d];
                out[(dims - 1) * column] = last + __builtin_ctzll(word);
            }
        }
        i += end - begin;
        position[dims - 1] = 0;
        for (int d = dims - 2; d >= 0; --d) {
            if (++position[d] < sizes[d]) break;
            position[d] = 0;
        }
    }
}
void coordinates(int64_t* out, int64_t row, int64_t column, const uint64_t* words, int64_t first, int64_t n,
                 const int64_t* sizes, int ndim) {
    switch (ndim) {
        case 1: return numbers(out, words, first, n);
        case 2: return coordinates_of<2>(out, row, column, words, first, n, sizes, ndim);
        case 3: return coordinates_of<3>(out, row, column, words, first, n, sizes, ndim);
        default: return coordinates_of<0>(out, row, column, words, first, n, sizes, ndim);
    }
}

}  // namespace

const MaskingKernels masking_kernels_table = {bits, compress, expand, coordinates};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
