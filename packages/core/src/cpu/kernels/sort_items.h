// Sorting of 64-bit integers that all differ. Included by kernel files only: Note [Kernels compiled twice].
#pragma once

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

// --- networks of vectors (Batcher, "Sorting networks and their applications", 1968) ---

using Items = Vec<int64_t>;
inline constexpr int kItems = kLanes<int64_t>;

#if defined(__AVX512F__)
RL_INLINE Items lesser(Items a, Items b) { return (Items)_mm512_min_epi64((__m512i)a, (__m512i)b); }
RL_INLINE Items greater(Items a, Items b) { return (Items)_mm512_max_epi64((__m512i)a, (__m512i)b); }
#else
RL_INLINE Items lesser(Items a, Items b) { return a < b ? a : b; }
RL_INLINE Items greater(Items a, Items b) { return a < b ? b : a; }
#endif

// Compares each lane `l` with lane `l ^ kOther`. The lower of both lanes receives the lesser item, and the upper
// lane the greater.
template <int kOther>
RL_INLINE Items exchange(Items v) {
    constexpr int kTop = kOther & 4 ? 4 : kOther & 2 ? 2 : 1;
    Items other, lower;
    for (int l = 0; l < kItems; ++l) {
        other[l] = l ^ kOther;
        lower[l] = l & kTop ? 0 : -1;
    }
    const Items s = __builtin_shuffle(v, other);
    return lower ? lesser(v, s) : greater(v, s);
}
RL_INLINE Items reversed(Items v) {
    Items from;
    for (int l = 0; l < kItems; ++l) from[l] = kItems - 1 - l;
    return __builtin_shuffle(v, from);
}
// Sorts a bitonic vector.
RL_INLINE Items merged(Items v) {
    if constexpr (kItems == 8) v = exchange<4>(v);
    return exchange<1>(exchange<2>(v));
}
RL_INLINE Items sorted(Items v) {
    v = exchange<1>(exchange<3>(exchange<1>(v)));
    if constexpr (kItems == 8) v = exchange<1>(exchange<2>(exchange<7>(v)));
    return v;
}

// Sorts kCount vectors as if they were one. The second of two sorted halves is reversed, which makes the whole
// sequence bitonic. Its vectors stay reversed until each of them is merged.
template <int kCount>
RL_INLINE void sort_vectors(Items* v) {
#pragma GCC unroll 32
    for (int r = 0; r < kCount; ++r) v[r] = sorted(v[r]);
#pragma GCC unroll 8
    for (int size = 2; size <= kCount; size *= 2) {
#pragma GCC unroll 32
        for (int r = 0; r < kCount; ++r) {
            const int mirrored = r / size * size + size - 1 - r % size;
            if (mirrored < r) continue;
            const Items a = v[r], b = reversed(v[mirrored]);
            v[r] = lesser(a, b);
            v[mirrored] = greater(a, b);
        }
#pragma GCC unroll 8
        for (int by = size / 4; by >= 1; by /= 2) {
#pragma GCC unroll 32
            for (int r = 0; r < kCount; ++r) {
                if (r & by) continue;
                const Items a = v[r], b = v[r + by];
                v[r] = lesser(a, b);
                v[r + by] = greater(a, b);
            }
        }
#pragma GCC unroll 32
        for (int r = 0; r < kCount; ++r) v[r] = merged(v[r]);
    }
}

template <int kCount>
RL_INLINE void sort_few(int64_t* x, int64_t n) {
    constexpr int64_t kMost = __INT64_MAX__;
    int64_t padded[kCount * kItems];
    int64_t i = 0;
    for (; i < n; ++i) padded[i] = x[i];
    for (; i < kCount * kItems; ++i) padded[i] = kMost;
    Items v[kCount];
#pragma GCC unroll 32
    for (int r = 0; r < kCount; ++r) v[r] = load(padded + r * kItems);
    sort_vectors<kCount>(v);
#pragma GCC unroll 32
    for (int r = 0; r < kCount; ++r) store(padded + r * kItems, v[r]);
    for (i = 0; i < n; ++i) x[i] = padded[i];
}

// --- quicksort, a vector at a time ---

inline constexpr int64_t kFewItems = (kItems == 8 ? 16 : 8) * kItems;

// Sorts two to four items. A vector would have to wait until the items are written to memory.
RL_INLINE void sort_tiny(int64_t* x, int64_t n) {
    const auto exchange = [x](int i, int k) {
        const int64_t a = x[i], b = x[k];
        x[i] = a < b ? a : b;
        x[k] = a < b ? b : a;
    };
    exchange(0, 1);
    if (n == 3) {
        exchange(1, 2);
        exchange(0, 1);
    } else if (n == 4) {
        exchange(2, 3);
        exchange(0, 2);
        exchange(1, 3);
        exchange(1, 2);
    }
}

static void sort_small(int64_t* x, int64_t n) {
    if (n < 2) return;
    if (n <= 4) return sort_tiny(x, n);
    if (n <= kItems) return sort_few<1>(x, n);
    if (n <= 2 * kItems) return sort_few<2>(x, n);
    if (n <= 4 * kItems) return sort_few<4>(x, n);
    if constexpr (kItems == 8) {
        if (n > 8 * kItems) return sort_few<16>(x, n);
    }
    sort_few<8>(x, n);
}

// Moves the lanes of `chosen` to the front. The values of the lanes behind them are not specified.
RL_INLINE Items side_by_side(Items v, unsigned chosen) {
#if defined(__AVX512F__)
    return (Items)_mm512_maskz_compress_epi64(static_cast<__mmask8>(chosen), (__m512i)v);
#else
    const uint64_t bytes = _pdep_u64(_pdep_u32(chosen, 0x55) * 3, 0x0101010101010101) * 0xff;
    const __m256i from =
        _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(_pext_u64(0x0706050403020100, bytes))));
    return (Items)_mm256_permutevar8x32_epi32((__m256i)v, from);
#endif
}
RL_INLINE unsigned lanes_below(Items v, Items pivot) {
#if defined(__AVX512F__)
    return _mm512_cmplt_epi64_mask((__m512i)v, (__m512i)pivot);
#else
    return static_cast<unsigned>(_mm256_movemask_pd((__m256d)(v < pivot)));
#endif
}

// Returns the median of a few items.
RL_INLINE int64_t pivot_of(const int64_t* x, int64_t n) {
    int64_t some[2 * kItems];
    const int64_t step = n / (2 * kItems);
    for (int i = 0; i < 2 * kItems; ++i) some[i] = x[i * step + step / 2];
    Items v[2] = {load(some), load(some + kItems)};
    sort_vectors<2>(v);
    return v[1][0];
}

// Moves the items below `pivot` to the front and returns their number. `spare` has room for n items and a vector.
static int64_t part_items(int64_t* x, int64_t n, int64_t pivot, int64_t* spare) {
    constexpr unsigned kAll = (1u << kItems) - 1;
    const Items by = broadcast(pivot);
    int64_t low = 0, high = 0, i = 0;
    for (; i + kItems <= n; i += kItems) {
        // The items that are overwritten at the front have already been read.
        const Items v = load(x + i);
        const unsigned below = lanes_below(v, by);
        store(x + low, side_by_side(v, below));
        store(spare + high, side_by_side(v, below ^ kAll));
        const int count = __builtin_popcount(below);
        low += count;
        high += kItems - count;
    }
    for (; i < n; ++i) {
        const int64_t item = x[i];
        if (item < pivot) x[low++] = item;
        else spare[high++] = item;
    }
    __builtin_memcpy(x + low, spare, static_cast<size_t>(high) * sizeof(int64_t));
    return low;
}

// Moves item `at` down the heap to its place.
RL_INLINE void sift(int64_t* x, int64_t at, int64_t n) {
    const int64_t item = x[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && x[child] < x[child + 1];
        if (x[child] <= item) break;
        x[at] = x[child];
    }
    x[at] = item;
}
// Heap sort, which is used if the pivots were bad too often.
static void sort_by_heap(int64_t* x, int64_t n) {
    for (int64_t at = n / 2; at-- > 0;) sift(x, at, n);
    for (int64_t last = n - 1; last > 0; --last) {
        const int64_t item = x[last];
        x[last] = x[0];
        x[0] = item;
        sift(x, 0, last);
    }
}

// Sorts in ascending order.
static void sort_items(int64_t* x, int64_t n, int64_t* spare, int depth) {
    while (n > kFewItems) {
        if (depth-- == 0) return sort_by_heap(x, n);
        const int64_t low = part_items(x, n, pivot_of(x, n), spare);
        sort_items(x, low, spare, depth);
        x += low;
        n -= low;
    }
    sort_small(x, n);
}
RL_INLINE void sort_items(int64_t* x, int64_t n, int64_t* spare) { sort_items(x, n, spare, 64); }

// Moves the first `k` items to the front, in any order.
static void select_by_parts(int64_t* x, int64_t n, int64_t k, int64_t* spare) {
    for (int depth = 64; n > kFewItems; --depth) {
        if (k == 0 || k == n) return;
        if (depth == 0) return sort_by_heap(x, n);
        const int64_t low = part_items(x, n, pivot_of(x, n), spare);
        if (low >= k) {
            n = low;
        } else {
            x += low;
            n -= low;
            k -= low;
        }
    }
    sort_small(x, n);
}
RL_INLINE int64_t largest_of(const int64_t* x, int64_t n) {
    int64_t most = x[0];
    for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
    return most;
}
static void select_items(int64_t* x, int64_t n, int64_t k, int64_t* spare) {
    // If there are many items, the k-th of a few items is a bound: items above it cannot be among the first k of
    // all.
    const int64_t room = 4 * k > 8 * kItems ? 4 * k : 8 * kItems;
    if (k == 0 || n < 2 * room) return select_by_parts(x, n, k, spare);
    select_by_parts(x, room, k, spare);
    Items by = broadcast(largest_of(x, k));
    int64_t i = room, held = k;
    for (; i + kItems <= n; i += kItems) {
        const Items v = load(x + i);
        const unsigned below = lanes_below(v, by);
        if (below == 0) continue;
        store(x + held, side_by_side(v, below));
        held += __builtin_popcount(below);
        if (held + kItems > room) {
            select_by_parts(x, held, k, spare);
            by = broadcast(largest_of(x, k));
            held = k;
        }
    }
    for (; i < n; ++i) x[held++] = x[i];
    select_by_parts(x, held, k, spare);
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
