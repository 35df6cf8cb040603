// Register-blocked inner kernels of the matrix product. Each kernel computes one small tile of c over a range of k, and
// keeps the tile in registers. A tile of `rows` by `vectors` needs rows * vectors accumulators, `vectors` registers for
// b and one for an element of a.
#pragma once

#include "cpu/gemm.h"
#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// The epilogue, which writes a finished tile to c: alpha * tile + beta * init.
template <class T>
struct Epilogue {
    T alpha, beta;
    const T* init;  // address of the element of `init` for the tile's first element; may be null
    int64_t init_row;
    int64_t init_col;  // 0 or 1
};

template <class T, class... Some>
RL_INLINE Vec<T> finish(const Epilogue<T>& e, Vec<T> v, int64_t row, int64_t column, Some... lanes) {
    v *= e.alpha;
    if (e.init == nullptr) return v;
    const T* init = e.init + row * e.init_row;
    return e.init_col == 0 ? v + broadcast<T>(e.beta * *init) : v + e.beta * load(init + column, lanes...);
}

/// Returns the number of vectors in the widest tile of `rows` rows that fits in the registers.
constexpr int max_vectors(int rows) {
    int v = (kRegisters - 1) / (rows + 1);
    return v < 6 ? v : 6;
}

// --- outer products: vectors run along n -------------------------------------------------------------------

// The number of rows and of vectors of a tile if a and b are packed, and the number of rows if they are read in place,
// which needs more pointers. Sixteen registers could also hold 6 by 2 instead of 4 by 3, but such a tile needs more
// loads.
inline constexpr int kPackedRows = kRegisters == 32 ? 14 : 4;
inline constexpr int kPackedVectors = kRegisters == 32 ? 2 : 3;
inline constexpr int kStridedRows = kRegisters == 32 ? 8 : 4;

template <class T>
struct TileArgs {
    int64_t k;
    const T* a;
    int64_t a_row, a_col;  // if packed: 1 and the tile's rows
    const T* b;
    int64_t b_row;
    T* c;
    int64_t c_row;
    int64_t last;  // columns in the last vector
    Epilogue<T> epilogue;
    const T* next;  // if packed: memory to prefetch, one line for each step along k
    int64_t next_row;
    bool stream = false;  // if packed: whether whole vectors of c, which must be aligned, bypass the caches
};
template <class T>
using TileFn = void (*)(const TileArgs<T>&);

// Adds the products of two pairs in each lane to `acc`: Note [Pairs of bfloat16] in gemm.h. `a` is one pair for all
// lanes.
RL_INLINE void add_products_of_pairs([[maybe_unused]] Vec<float>& acc, [[maybe_unused]] const float& a,
                                     [[maybe_unused]] const Vec<float>& b) {
#if defined(__AVX512F__)
    asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(b), "m"(a));
#endif
}

template <class T, int kRows, int kVectors, bool kPacked, bool kPairs = false>
void tile(const TileArgs<T>& t) {
    using V = Vec<T>;
    constexpr int kL = kLanes<T>;
    const Lanes<T> lanes(t.last);
    const int64_t a_row = kPacked ? 1 : t.a_row, a_col = kPacked ? kRows : t.a_col, b_row = t.b_row;
    const T* a = t.a;
    const T* b = t.b;
    const bool whole = t.last == kL, stream = kPacked && kVectorBytes == 64 && t.stream && whole;
    if (kPacked && !stream) {  // prefetch the tile of c, which is needed after all steps
        for (int i = 0; i < kRows; ++i) {
            for (int j = 0; j < kVectors; ++j) __builtin_prefetch(t.c + i * t.c_row + j * kL, 1);
        }
    }
    V acc[kRows][kVectors] = {};
    const T* next = t.next;
    const auto add_products = [&](auto read_last) {
        for (int64_t k = t.k; k > 0; --k) {
            if constexpr (kPacked) {
                __builtin_prefetch(next, 0, 2);
                next += t.next_row;
            }
            V bv[kVectors];
#pragma GCC unroll 16
            for (int j = 0; j < kVectors; ++j)
                bv[j] = j + 1 < kVectors ? load(b + j * kL) : read_last(b + j * kL);
#pragma GCC unroll 16
            for (int i = 0; i < kRows; ++i) {
                if constexpr (kPairs) {
#pragma GCC unroll 16
                    for (int j = 0; j < kVectors; ++j) add_products_of_pairs(acc[i][j], a[i * a_row], bv[j]);
                } else {
                    V av = broadcast<T>(a[i * a_row]);
#pragma GCC unroll 16
                    for (int j = 0; j < kVectors; ++j) acc[i][j] += av * bv[j];
                }
            }
            a += a_col;
            b += b_row;
        }
    };
    // A packed b is padded with zeros. If b is read in place, elements beyond the last column must not be read.
    if (kPacked || whole) add_products([](const T* p) { return load(p); });
    else add_products([lanes](const T* p) { return load(p, lanes); });
    // Local copies, which the stores below cannot change, stay in registers.
    const Epilogue<T> epilogue = t.epilogue;
    T* const c = t.c;
    const int64_t c_row = t.c_row;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j) {
            T* const out = c + i * c_row + j * kL;
            if (stream) {
                store_past_caches(out, finish(epilogue, acc[i][j], i, j * kL));
            } else if (j + 1 < kVectors || whole) {
                store(out, finish(epilogue, acc[i][j], i, j * kL));
            } else {
                store(out, finish(epilogue, acc[i][j], i, j * kL, lanes), lanes);
            }
        }
    }
}

// --- inner products: vectors run along k -------------------------------------------------------------------

inline constexpr int kDotRows = kStridedRows;
inline constexpr int kDotColumns = 8;

/// A tile of a product. Its elements are dot products of rows of `a` and columns of `b`, both of which have adjacent
/// elements along k.
template <class T>
struct DotArgs {
    int64_t k;
    const T* a;
    int64_t a_row;
    const T* b;
    int64_t b_col;
    T* c;
    int64_t c_row;
    Epilogue<T> epilogue;
    const T* next;  // rows to prefetch, as many as the tile has columns
    int64_t next_row;
};
template <class T>
using DotFn = void (*)(const DotArgs<T>&);

namespace detail {

// Adds neighbouring pairs of vectors so that after log2(lanes) steps lane l of r[0] is the sum of vector l.
template <class T, int S, int kCount>
RL_INLINE void add_pairs(Vec<T>* r) {
    constexpr int kL = kLanes<T>;
    using Index = LaneIndex<T>;
    Index low, high;
#pragma GCC unroll 16
    for (int l = 0; l < kL; ++l) {
        low[l] = (l & S) ? kL + l - S : l;
        high[l] = (l & S) ? kL + l : l + S;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount / 2; ++i) {
        Vec<T> a = r[2 * i], b = r[2 * i + 1];
        r[i] = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
    }
}

}  // namespace detail

/// Returns a vector whose lane l is the sum of r[l]. Overwrites r.
template <class T>
RL_INLINE Vec<T> sums(Vec<T>* r) {
    constexpr int kL = kLanes<T>;
    detail::add_pairs<T, 1, kL>(r);
    detail::add_pairs<T, 2, kL / 2>(r);
    if constexpr (kL > 4) detail::add_pairs<T, 4, kL / 4>(r);
    if constexpr (kL > 8) detail::add_pairs<T, 8, kL / 8>(r);
    return r[0];
}

template <class T, int kRows, int kColumns>
void dot_tile(const DotArgs<T>& t) {
    using V = Vec<T>;
    constexpr int kL = kLanes<T>;
    constexpr int kCount = kRows * kColumns, kPadded = (kCount + kL - 1) / kL * kL;
    V acc[kPadded] = {};
    int64_t k = 0;
    for (; k + kL <= t.k; k += kL) {
        V bv[kColumns];
#pragma GCC unroll 16
        for (int j = 0; j < kColumns; ++j) {
            bv[j] = load(t.b + j * t.b_col + k);
            __builtin_prefetch(t.next + j * t.next_row + k, 0, 2);
        }
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
            V av = load(t.a + i * t.a_row + k);
#pragma GCC unroll 16
            for (int j = 0; j < kColumns; ++j) acc[i * kColumns + j] += av * bv[j];
        }
    }
    if (k < t.k) {
        const Lanes<T> lanes(t.k - k);
        V bv[kColumns];
#pragma GCC unroll 16
        for (int j = 0; j < kColumns; ++j) bv[j] = load(t.b + j * t.b_col + k, lanes);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
            V av = load(t.a + i * t.a_row + k, lanes);
#pragma GCC unroll 16
            for (int j = 0; j < kColumns; ++j) acc[i * kColumns + j] += av * bv[j];
        }
    }
    alignas(64) T totals[kPadded];
#pragma GCC unroll 16
    for (int p = 0; p < kPadded; p += kL) store(totals + p, sums<T>(acc + p));
    const Epilogue<T>& e = t.epilogue;
    for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kColumns; ++j) {
            T v = e.alpha * totals[i * kColumns + j];
            if (e.init != nullptr) v += e.beta * e.init[i * e.init_row + j * e.init_col];
            t.c[i * t.c_row + j] = v;
        }
    }
}

// --- tables of all tile sizes ------------------------------------------------------------------------------

template <class T, bool kPacked>
struct Tiles {
    static constexpr int kRows = kPacked ? kPackedRows : kStridedRows;
    static constexpr int kWidest = kPacked ? kPackedVectors : 6;
    TileFn<T> fn[kRows][kWidest];
};

template <class T, bool kPacked, bool kPairs, int kRows, int kVectors>
constexpr void fill_tiles(Tiles<T, kPacked>& table) {
    if constexpr (kVectors <= max_vectors(kRows))
        table.fn[kRows - 1][kVectors - 1] = tile<T, kRows, kVectors, kPacked, kPairs>;
    if constexpr (kVectors > 1) {
        fill_tiles<T, kPacked, kPairs, kRows, kVectors - 1>(table);
    } else if constexpr (kRows > 1) {
        fill_tiles<T, kPacked, kPairs, kRows - 1, Tiles<T, kPacked>::kWidest>(table);
    }
}
template <class T, bool kPacked, bool kPairs>
constexpr Tiles<T, kPacked> make_tiles() {
    Tiles<T, kPacked> table{};
    fill_tiles<T, kPacked, kPairs, Tiles<T, kPacked>::kRows, Tiles<T, kPacked>::kWidest>(table);
    return table;
}
template <class T, bool kPacked, bool kPairs = false>
inline constexpr Tiles<T, kPacked> tiles = make_tiles<T, kPacked, kPairs>();

template <class T>
struct DotTiles {
    DotFn<T> fn[kDotRows][kDotColumns];
};
constexpr int max_dot_columns(int rows) {
    int v = (kRegisters - 1) / (rows + 1);
    return v < kDotColumns ? v : kDotColumns;
}
template <class T, int kRows, int kColumns>
constexpr void fill_dot_tiles(DotTiles<T>& table) {
    if constexpr (kColumns <= max_dot_columns(kRows))
        table.fn[kRows - 1][kColumns - 1] = dot_tile<T, kRows, kColumns>;
    if constexpr (kColumns > 1) {
        fill_dot_tiles<T, kRows, kColumns - 1>(table);
    } else if constexpr (kRows > 1) {
        fill_dot_tiles<T, kRows - 1, kDotColumns>(table);
    }
}
template <class T>
constexpr DotTiles<T> make_dot_tiles() {
    DotTiles<T> table{};
    fill_dot_tiles<T, kDotRows, kDotColumns>(table);
    return table;
}
template <class T>
inline constexpr DotTiles<T> dot_tiles = make_dot_tiles<T>();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
