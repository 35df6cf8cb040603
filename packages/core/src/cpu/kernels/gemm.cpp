// The matrix product. One of these algorithms is chosen by shapes and strides only, so that the result depends on
// neither the number of threads nor the machine's load.
//
//   in place   a and b are read without copies; for small products
//   stream     few rows of a: b is read once, row after row
//   dot        both operands are contiguous along k (x times a transposed weight) and one side is short
//   transposed the same with more rows of a: they are packed, and b is read in place
//   packed     everything else: blocks of a and panels of b are copied into cache in the order of use (the
//              blocking is that of Goto and van de Geijn, "Anatomy of high-performance matrix
//              multiplication", 2008)
#include "cpu/gemm.h"

#include <type_traits>

#include "cpu/contiguous.h"
#include "cpu/kernels/gemm_integer.h"
#include "cpu/kernels/gemm_micro.h"
#include "cpu/kernels/gemm_pack.h"
#include "cpu/kernels/gemm_stream.h"
#include "cpu/kernels/gemm_tiles.h"
#include "cpu/kernels/short_rows.h"
#include "cpu/streaming.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Number of multiply-adds below which a second thread costs more time than it saves.
constexpr int64_t kFlopsPerThread = 1 << 18;

// Returns the part of the product with rows [i0, i1) and columns [j0, j1).
template <class T>
Gemm<T> part(const Gemm<T>& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    Gemm<T> p = g;
    p.m = i1 - i0;
    p.n = j1 - j0;
    p.a += i0 * g.a_row;
    p.c += i0 * g.c_row;
    if (g.column_run != g.kOneRun) {
        p.first_column += j0;
    } else {
        p.b += j0 * g.b_col;
        p.c += j0;
    }
    if (g.init != nullptr) p.init += i0 * g.init_row + j0 * g.init_col;
    return p;
}

// --- in place ----------------------------------------------------------------------------------------------

// Number of steps along k after which sums are added to c. Shorter sums have smaller rounding errors.
constexpr int64_t kInPlaceDepth = 512;

template <class T>
void in_place(const Gemm<T>& g) {
    constexpr int kL = kLanes<T>;
    for (int64_t k = 0; k < g.k; k += kInPlaceDepth) {
        const int64_t steps = min(kInPlaceDepth, g.k - k);
        const T* const a = g.a + k * g.a_col;
        const T* const b = g.b + k * g.b_row;
        for (int64_t i0 = 0, left = ceil_div(g.m, kStridedRows); left > 0; --left) {
            // Blocks have even sizes: 9 rows are divided into 5 + 4, not 8 + 1.
            const int64_t rows = left == 1 ? g.m - i0 : ceil_div(g.m - i0, left);
            const int64_t widest = max_vectors(static_cast<int>(rows));
            for (int64_t j0 = 0; j0 < g.n; j0 += widest * kL) {
                const int64_t columns = min(g.n - j0, widest * kL), vectors = ceil_div(columns, kL);
                TileArgs<T> t{steps,
                              a + i0 * g.a_row,
                              g.a_row,
                              g.a_col,
                              b + j0,
                              g.b_row,
                              g.c + i0 * g.c_row + j0,
                              g.c_row,
                              columns - (vectors - 1) * kL,
                              epilogue_at(g, i0, j0),
                              nullptr,
                              0};
                if (k > 0) t.epilogue = {g.alpha, T(1), t.c, g.c_row, 1};
                tiles<T, false>.fn[rows - 1][vectors - 1](t);
            }
            i0 += rows;
        }
    }
}

// --- dot ---------------------------------------------------------------------------------------------------

// Number of steps along k after which sums are written to memory, so that the short side stays in cache.
constexpr int64_t kDotDepth = 1024;

template <class T>
void dot_blocks(const Gemm<T>& g) {
    // If there are several blocks of rows, each of them reads all columns again, so wider tiles of fewer rows need
    // less bandwidth.
    const int64_t most = g.m <= kDotRows ? kDotRows : kDotRows / 2;
    const int64_t rows = ceil_div(g.m, ceil_div(g.m, most)),
                  columns = max_dot_columns(static_cast<int>(rows));
    const auto steps_from = [&](int64_t k, int64_t steps) {
        const T* const a = g.a + g.a_step(k);
        const T* const b = g.b + g.b_step(k);
        auto tile_at = [&](int64_t i, int64_t j) {
            const int64_t r = min(rows, g.m - i), n = min(columns, g.n - j);
            DotArgs<T> t{steps,   a + i * g.a_row,
                         g.a_row, b + j * g.b_col,
                         g.b_col, g.c + i * g.c_row + j,
                         g.c_row, epilogue_at(g, i, j),
                         nullptr, 0};
            // Each tile of one side prefetches a part of the rows that the next tiles of the other side read.
            if (g.m <= g.n) {
                t.next = t.b + columns * g.b_col, t.next_row = g.b_col;
            } else {
                t.next = t.a + min(rows + j, 2 * rows) * g.a_row, t.next_row = g.a_row;
            }
            if (k > 0) t.epilogue = {g.alpha, T(1), t.c, g.c_row, 1};
            dot_tiles<T>.fn[r - 1][n - 1](t);
        };
        // The inner loop runs over the short side, so that the long side is read once.
        if (g.m <= g.n) {
            for (int64_t j = 0; j < g.n; j += columns) {
                for (int64_t i = 0; i < g.m; i += rows) tile_at(i, j);
            }
        } else {
            for (int64_t i = 0; i < g.m; i += rows) {
                for (int64_t j = 0; j < g.n; j += columns) tile_at(i, j);
            }
        }
    };
    for_runs(0, g.k, g.step_run, [&](int64_t first, int64_t count) {
        for (int64_t k = 0; k < count; k += kDotDepth) steps_from(first + k, min(kDotDepth, count - k));
    });
}

// --- transposed --------------------------------------------------------------------------------------------

// Maximum number of rows of a, so that they stay in cache.
constexpr int64_t kTransposedRows = 64;
// The widest panel of rows of a, in vectors.
constexpr int64_t kRowVectors = max_vectors(kStridedRows);

// Whether the vectors have few unused lanes. Sixteen registers hold so few inner products that more unused lanes pay off.
template <class T>
bool fills_vectors(int64_t rows) {
    return kRegisters == 32 ? 5 * rows >= 4 * round_up(rows, kLanes<T>) : rows > kLanes<T>;
}

// Number of elements of scratch memory: the rows of a, padded to whole vectors.
template <class T>
int64_t transposed_scratch(const Gemm<T>& g) {
    return round_up(min(g.m, kTransposedRows), kLanes<T>) * g.k;
}

// Computes the transposed product. The rows of a are packed into panels, so that each lane of a vector belongs to one row of a.
// The columns of b are read in place.
template <class T>
void transposed(const Gemm<T>& g, T* packed) {
    constexpr int kL = kLanes<T>;
    const int64_t vectors = ceil_div(g.m, kL), most = ceil_div(vectors, ceil_div(vectors, kRowVectors));
    // Calls body(the panel, its width in vectors, its first row, its number of rows).
    const auto for_panels = [&](auto body) {
        for (int64_t v = 0; v < vectors; v += most) {
            const int64_t count = min(most, vectors - v);
            body(packed + v * kL * g.k, count, v * kL, min(count * kL, g.m - v * kL));
        }
    };
    for_panels([&](T* panel, int64_t count, int64_t row, int64_t rows) {
        pack_panel<T, true>(panel, count * kL, g.a + row * g.a_row, g.a_row, 1, rows, g.k);
    });
    alignas(64) T sums[kL * kRowVectors * kL];
    for (int64_t j = 0; j < g.n; j += kL) {
        const int64_t columns = min(kL, g.n - j);
        const Lanes<T> lanes(columns);
        for_panels([&](const T* panel, int64_t count, int64_t first, int64_t rows) {
            const int64_t width = count * kL;
            for (int64_t l = 0; l < columns; l += kStridedRows) {
                const int64_t lines = min(kStridedRows, columns - l);
                T* const to = sums + l * width;
                for (int64_t k = 0; k < g.k; k += kInPlaceDepth) {
                    const Epilogue<T> epilogue{T(1), T(1), k > 0 ? to : nullptr, width, 1};
                    tiles<T, false>.fn[lines - 1][count - 1](
                        {min(kInPlaceDepth, g.k - k), g.b + (j + l) * g.b_col + k, g.b_col, 1,
                         panel + k * width, width, to, width, kL, epilogue, nullptr, 0});
                }
            }
            for (int64_t r = 0; r < rows; r += kL) {
                Vec<T> square[kL];
#pragma GCC unroll 16
                for (int64_t l = 0; l < kL; ++l)
                    square[l] = l < columns ? load(sums + l * width + r) : Vec<T>{};
                transpose<T>(square);
                for (int64_t i = r; i < min(rows, r + kL); ++i)
                    store(g.c + (first + i) * g.c_row + j,
                          finish(epilogue_at(g, first + i, j), square[i - r], 0, 0, lanes), lanes);
            }
        });
    }
}

// --- packed ------------------------------------------------------------------------------------------------

constexpr int64_t kDepth = kRegisters == 32 ? 384 : 320;
// Maximum number of rows of a block of a, such that the packed block stays in the second-level cache.
constexpr int64_t kBlockRows = kRegisters == 32 ? 24 * kPackedRows : 36 * kPackedRows;
// Number of panels of b that are packed together, so that rows of b are read in longer runs.
constexpr int64_t kGroup = 4;

template <class T>
constexpr int64_t kPanel = kPackedVectors * kLanes<T>;

// Number of columns of b that stay packed while all blocks of a are multiplied by them. They fit in the last-level
// cache.
template <class T>
constexpr int64_t kBlockColumns = 64 * kPanel<T>;

// How a product is divided: into blocks of a with `height` rows and `depth` steps, and into `width` columns of b,
// which are packed once for all blocks of a. If there is a single block of a, no panel of b is used twice, so all
// groups of panels share the same memory.
template <class T>
struct Cut {
    int64_t depth, height, width;
    bool single;
    explicit Cut(const Gemm<T>& g)
        : depth(min(g.k, even_part(g.k, kDepth, 16))),
          height(min(g.m, even_part(g.m, kBlockRows, kPackedRows))),
          width(min(g.n, even_part(g.n, kBlockColumns<T>, kPanel<T>))),
          single(g.m <= kBlockRows) {
        if (single) width = g.n;
    }
    // Number of elements of the packed block of a, plus one vector, because packing may write past the block's end.
    int64_t block_size() const { return round_up(height * depth + kLanes<T>, 16); }
};

// Returns the number of elements of scratch memory for one packed product or any smaller one: a block of a and
// panels of b.
template <class T>
int64_t packed_scratch(const Gemm<T>& g) {
    const int64_t depth = min(g.k, kDepth), group = kGroup * kPanel<T>;
    const int64_t columns = min(round_up(g.n, kLanes<T>), kBlockColumns<T>);
    return round_up(min(g.m, kBlockRows) * depth + kLanes<T>, 16) +
           (g.m <= kBlockRows ? group : max(group, columns)) * depth;
}

// An even division of rows or columns into panels of at most `most` rows or columns.
struct Panels {
    int64_t count, size, longer;  // the first `longer` panels have length `size`, the others size - 1
    Panels(int64_t total, int64_t most) {
        count = ceil_div(total, most);
        size = ceil_div(total, count);
        longer = total - count * (size - 1);
    }
    int64_t begin(int64_t p) const {
        return p <= longer ? p * size : longer * size + (p - longer) * (size - 1);
    }
    int64_t length(int64_t p) const { return p < longer ? size : size - 1; }
};

// A block of the product: some rows of a, all columns of b, and some steps along k.
template <class T>
struct Block {
    Gemm<T> g;  // moved to the block's first row
    int64_t step;  // the first step
    Panels rows;  // panels of a, with as many rows as the registers hold
    Panels columns;  // panels of b, whose columns are counted in vectors
    T* a;  // packed

    Block(const Gemm<T>& whole, int64_t i, int64_t height, int64_t k, int64_t depth, T* packed)
        : g(whole),
          step(k),
          rows(height, kPackedRows),
          columns(ceil_div(whole.n, kLanes<T>), kPackedVectors),
          a(packed) {
        g.m = height;
        g.k = depth;
        g.a += i * g.a_row;
        g.c += i * g.c_row;
        if (g.init != nullptr) g.init += i * g.init_row;
        // Later steps along k add to c, and narrower vectors would write parts of cache lines.
        g.stream = g.stream && depth == whole.k && g.c_row % kLanes<T> == 0 && kVectorBytes == 64;
    }

    void pack() const {
        // If a is contiguous along m, a few steps at a time are packed for all panels, so that the memory of a is
        // read in one pass.
        const int64_t chunk = g.a_row == 1 ? 16 : g.k;
        for (int64_t first = 0; first < g.k; first += chunk) {
            for (int64_t p = 0; p < rows.count; ++p) {
                const int64_t row = rows.begin(p), count = rows.length(p);
                for_runs(step + first, min(chunk, g.k - first), g.step_run, [&](int64_t k, int64_t steps) {
                    pack_panel<T, false>(a + row * g.k + (k - step) * count, count,
                                         g.a + row * g.a_row + g.a_step(k), g.a_row, g.a_col, count, steps);
                });
            }
        }
    }

    // `packed_b` holds the packed panels of b. If `target` is not null, it is the same memory, and this function
    // packs the panels into it. If `keep`, each panel has its own memory; otherwise all groups of panels share
    // memory.
    void multiply(const T* packed_b, T* target, bool keep) const {
        for (int64_t first = 0; first < columns.count; first += kGroup) {
            const int64_t last = min(columns.count, first + kGroup);
            const int64_t j_begin = begin(first), j_end = begin(last);
            const int64_t offset = keep ? j_begin * g.k : 0;
            const T* const buffer = packed_b + offset;
            if (target != nullptr) pack_group(first, last, target + offset);
            // The next group is prefetched during the computation, line after line, because a few rows of a do not
            // hide the latency.
            constexpr int64_t kLine = 64 / sizeof(T);
            int64_t next = target != nullptr && g.b_col == 1 ? j_end : g.n;
            const int64_t next_end = begin(min(columns.count, last + kGroup));
            // One panel of b stays in the first-level cache while all panels of a are multiplied by it.
            for (int64_t q = first; q < last; ++q) {
                const int64_t j = begin(q), vectors = columns.length(q);
                const int64_t width = min(g.n - j, vectors * kLanes<T>);
                const bool one_run = (g.first_column + j) % g.column_run + width <= g.column_run;
                for (int64_t p = 0; p < rows.count; ++p) {
                    const int64_t row = rows.begin(p), count = rows.length(p);
                    TileArgs<T> t{g.k,
                                  a + row * g.k,
                                  1,
                                  count,
                                  buffer + (j - j_begin) * g.k,
                                  vectors * kLanes<T>,
                                  g.c + row * g.c_row + g.c_column(j),
                                  g.c_row,
                                  width - (vectors - 1) * kLanes<T>,
                                  epilogue(row, j),
                                  g.b,
                                  0};
                    if (target == nullptr && p * g.k * kLine < vectors * kLanes<T> * g.k) {
                        // Packed panels are stored one after the other.
                        t.next = t.b + (vectors * kLanes<T> + p * kLine) * g.k;
                        t.next_row = kLine;
                    } else if (next < next_end) {
                        t.next = g.b + g.b_step(step) + g.b_column(next);
                        t.next_row = g.b_row;
                        next += kLine;
                    }
                    t.stream = g.stream && one_run && reinterpret_cast<uintptr_t>(t.c) % kVectorBytes == 0;
                    if (one_run) product_of(count, vectors)(t);
                    else multiply_across_runs(t, row, count, j, width, vectors);
                }
            }
        }
    }

    // Returns the epilogue of a tile at (row, j). Except in the first steps, c holds the sums of earlier steps,
    // which are added.
    Epilogue<T> epilogue(int64_t row, int64_t j) const {
        if (step > 0) return {g.alpha, T(1), g.c + row * g.c_row + g.c_column(j), g.c_row, 1};
        return epilogue_at(g, row, j);
    }

    // Computes a tile whose columns are in several runs.
    void multiply_across_runs(TileArgs<T> t, int64_t row, int64_t count, int64_t j, int64_t width,
                              int64_t vectors) const {
        alignas(64) T sums[kPackedRows * kPanel<T>];
        t.c = sums;
        t.c_row = kPanel<T>;
        t.last = kLanes<T>;
        t.epilogue = {g.alpha, T(0), nullptr, 0, 0};
        product_of(count, vectors)(t);
        for_runs(g.first_column + j, width, g.column_run, [&](int64_t column, int64_t n) {
            const int64_t at = column - g.first_column - j;
            for (int64_t r = 0; r < count; ++r) {
                const T* from = sums + r * kPanel<T> + at;
                T* to = g.c + (row + r) * g.c_row + g.c_column(j + at);
                const Epilogue<T> e = epilogue(row + r, j + at);
                for (int64_t l = 0; l < n; ++l)
                    to[l] = e.init == nullptr ? from[l] : from[l] + e.beta * e.init[l * e.init_col];
            }
        });
    }

    // Returns the first column of a panel of b.
    int64_t begin(int64_t panel) const { return min(g.n, columns.begin(panel) * kLanes<T>); }

    TileFn<T> product_of(int64_t rows, int64_t vectors) const {
#if defined(__AVX512F__)
        if constexpr (std::is_same_v<T, float>) {
            if (g.pairs) return tiles<T, true, true>.fn[rows - 1][vectors - 1];
        }
#endif
        return tiles<T, true>.fn[rows - 1][vectors - 1];
    }

    void pack_group(int64_t first, int64_t last, T* buffer) const {
        // If b is contiguous along n, a few steps at a time are packed for the whole group, so that the memory of b
        // is read in one pass.
        const int64_t chunk = g.b_col == 1 ? 8 : g.k;
        const int64_t j_begin = begin(first);
        for (int64_t k = 0; k < g.k; k += chunk) {
            for (int64_t q = first; q < last; ++q) {
                const int64_t j = begin(q), width = columns.length(q) * kLanes<T>;
                const int64_t columns_left = min(width, g.n - j);
                for_runs(step + k, min(chunk, g.k - k), g.step_run, [&](int64_t at, int64_t steps) {
                    T* panel = buffer + (j - j_begin) * g.k + (at - step) * width;
                    pack_columns(panel, width, g.b + g.b_step(at), j, columns_left, steps);
                });
            }
        }
    }

    // Packs columns [j, j + count) of `steps` rows of b, and pads them with zeros to `width` columns.
    void pack_columns(T* panel, int64_t width, const T* b, int64_t j, int64_t count, int64_t steps) const {
        if ((g.first_column + j) % g.column_run + count <= g.column_run)
            return pack_panel<T, true>(panel, width, b + g.b_column(j), g.b_col, g.b_row, count, steps);
        for_runs(g.first_column + j, count, g.column_run, [&](int64_t column, int64_t n) {
            const int64_t at = column - g.first_column - j;
            pack_panel<T, false>(panel + at, width, b + g.b_column(j + at), g.b_col, g.b_row, n, steps);
        });
        for (int64_t p = 0; p < steps; ++p) {
            for (int64_t l = count; l < width; ++l) panel[p * width + l] = T(0);
        }
    }
};

template <class T>
void packed(const Gemm<T>& g, T* scratch) {
    const Cut<T> cut(g);
    for (int64_t j = 0; j < g.n; j += cut.width) {
        const Gemm<T> columns = part(g, 0, g.m, j, min(g.n, j + cut.width));
        for (int64_t k = 0; k < g.k; k += cut.depth) {
            for (int64_t i = 0; i < g.m; i += cut.height) {
                const Block<T> block(columns, i, min(cut.height, g.m - i), k, min(cut.depth, g.k - k),
                                     scratch);
                block.pack();
                T* const panels = scratch + cut.block_size();
                block.multiply(panels, i == 0 ? panels : nullptr, !cut.single);
            }
        }
    }
    if (g.stream) _mm_sfence();
}

template <class T>
void set_to_init(const Gemm<T>& g) {
    constexpr int kL = kLanes<T>;
    for_runs(g.first_column, g.n, g.column_run, [&](int64_t column, int64_t count) {
        const int64_t first = column - g.first_column;
        for (int64_t i = 0; i < g.m; ++i) {
            const Epilogue<T> e = epilogue_at(g, i, first);
            T* const c = g.c + i * g.c_row + g.c_column(first);
            for (int64_t j = 0; j < count; j += kL) {
                const Lanes<T> lanes(min(kL, count - j));
                store(c + j, finish(e, Vec<T>{}, 0, j, lanes), lanes);
            }
        }
    });
}

// --- products with a matrix b that was packed before --------------------------------------------------------

template <class T>
int64_t packed_size(const Gemm<T>& g) {
    return round_up(g.n, kLanes<T>) * g.k;
}

// Packs all columns of b, for one range of steps after the other.
template <class T>
void pack_columns(const Gemm<T>& g, T* packed) {
    if (g.n == 0 || g.k == 0) return;
    const Cut<T> cut(g);
    for (int64_t k = 0; k < g.k; k += cut.depth) {
        const Block<T> block(g, 0, 1, k, min(cut.depth, g.k - k), nullptr);
        T* const range = packed + round_up(g.n, kLanes<T>) * k;
        for (int64_t first = 0; first < block.columns.count; first += kGroup) {
            block.pack_group(first, min(block.columns.count, first + kGroup),
                             range + block.begin(first) * block.g.k);
        }
    }
}

template <class T>
void serial_packed(const Gemm<T>& g, const T* packed, T* scratch) {
    if (g.m == 0 || g.n == 0) return;
    if (g.k == 0) return set_to_init(g);
    const Cut<T> cut(g);
    for (int64_t k = 0; k < g.k; k += cut.depth) {
        for (int64_t i = 0; i < g.m; i += cut.height) {
            const Block<T> block(g, i, min(cut.height, g.m - i), k, min(cut.depth, g.k - k), scratch);
            block.pack();
            block.multiply(packed + round_up(g.n, kLanes<T>) * k, nullptr, true);
        }
    }
}

// --- short dot products ------------------------------------------------------------------------------------

// The length of the rows of a and of the columns of b up to which each lane of a vector computes one of the products.
template <class T>
constexpr int64_t kShortDot = 2 * kLanes<T>;

template <class T>
void short_dots(const Gemm<T>& g) {
    constexpr int kL = kLanes<T>;
    ShortRows<T> columns;
    for (int64_t j = 0; j < g.n; j += kL) {
        const int64_t count = min(kL, g.n - j);
        const Lanes<T> lanes(count);
        columns.read(g.b + j * g.b_col, count, g.k, g.b_col);
        for (int64_t i = 0; i < g.m; ++i) {
            const T* a = g.a + i * g.a_row;
            Vec<T> even{}, odd{};
            int64_t k = 0;
            for (; k + 2 <= g.k; k += 2) {
                even += a[k] * load(columns.elements + k * kL);
                odd += a[k + 1] * load(columns.elements + (k + 1) * kL);
            }
            if (k < g.k) even += a[k] * load(columns.elements + k * kL);
            store(g.c + i * g.c_row + j, finish(epilogue_at(g, i, j), even + odd, 0, 0, lanes), lanes);
        }
    }
}

// Computes products of so few elements that vectors would not save time.
constexpr int64_t kTiny = 16;
template <class T>
void tiny_dots(const Gemm<T>& g) {
    for (int64_t i = 0; i < g.m; ++i) {
        const Epilogue<T> e = epilogue_at(g, i, 0);
        for (int64_t j = 0; j < g.n; ++j) {
            const T *a = g.a + i * g.a_row, *b = g.b + j * g.b_col;
            T sum = T(0);
            for (int64_t k = 0; k < g.k; ++k) sum += a[k] * b[k];
            T& c = g.c[i * g.c_row + j];
            c = e.alpha * sum;
            if (e.init != nullptr) c += e.beta * e.init[j * e.init_col];
        }
    }
}

// --- the choice --------------------------------------------------------------------------------------------

// The number of rows up to which inner products are faster than packing their operands.
constexpr int64_t kMostDotRows = kRegisters == 32 ? 32 : 16;

enum class Way { InPlace, Stream, TinyDot, ShortDot, Dot, Transposed, Packed };

// Whether it is faster to read b without a copy, once for every kStridedRows rows of a, if b stays in cache.
template <class T>
bool reads_in_place(const Gemm<T>& g) {
    constexpr int64_t kMostRows = 64, kFewProducts = 48 * 48 * 48, kSmallBytes = 1 << 16;
    return g.m <= kMostRows || g.m * g.n * g.k <= kFewProducts ||
           g.n * g.k <= kSmallBytes / static_cast<int64_t>(sizeof(T));
}

// Whether the elements of a row of a, and those of a column of b, are adjacent.
template <class T>
bool is_along_steps(const Gemm<T>& g) {
    return g.a_col == 1 && g.b_row == 1 && g.b_col != 1 && g.step_run == g.kOneRun &&
           g.column_run == g.kOneRun;
}

template <class T>
Way choose(const Gemm<T>& g) {
    if (g.pairs || g.column_run != g.kOneRun) return Way::Packed;
    if (g.step_run != g.kOneRun) {
        // With few rows or columns, packing costs more than it saves, unless runs are short.
        const bool along = g.a_col == 1 && g.b_row == 1;
        return along && g.step_run >= kDotDepth / 2 && min(g.m, g.n) <= 32 ? Way::Dot : Way::Packed;
    }
    if (g.b_col == 1) {
        const bool cached = g.n * g.k <= (1 << 20) / static_cast<int64_t>(sizeof(T));
        const bool tiny = g.n <= kLanes<T> && g.k <= kLanes<T>;
        if (cached && (g.m > 2 || tiny) && reads_in_place(g)) return Way::InPlace;
        if (g.m <= 2 || (!cached && g.m <= kStreamRows)) return Way::Stream;
    } else if (is_along_steps(g)) {
        if (g.m <= 4 && g.m * g.n * g.k <= kTiny) return Way::TinyDot;
        if (g.m <= 4 && g.k <= kShortDot<T> && g.n >= kLanes<T>) return Way::ShortDot;
        // With more rows, packing b costs less, and only more steps make up for writing the transposed result.
        const int64_t steps = g.m <= 16 ? 64 : 256;
        if (g.m > 4 && g.m <= kTransposedRows && g.n >= kLanes<T> && g.k >= steps && fills_vectors<T>(g.m))
            return Way::Transposed;
        if (g.m <= 4 || ((g.m <= kMostDotRows || g.n <= 16) && g.k >= 64)) return Way::Dot;
    }
    return Way::Packed;
}

template <class T>
int64_t scratch_size(Way way, const Gemm<T>& g) {
    return way == Way::Packed ? packed_scratch(g) : way == Way::Transposed ? transposed_scratch(g) : 0;
}

// Returns the number of elements of scratch memory that suffices for a product and for any smaller one of equal strides.
template <class T>
int64_t most_scratch(const Gemm<T>& g) {
    return is_along_steps(g) ? max(packed_scratch(g), transposed_scratch(g)) : packed_scratch(g);
}

template <class T>
void one_thread(Way way, const Gemm<T>& g, T* scratch) {
    if (g.m == 0 || g.n == 0) return;  // an empty part of the grid
    switch (way) {
        case Way::InPlace: return in_place(g);
        case Way::Stream: return stream(g);
        case Way::TinyDot: return tiny_dots(g);
        case Way::ShortDot: return short_dots(g);
        case Way::Dot: return dot_blocks(g);
        case Way::Transposed: return transposed(g, scratch);
        case Way::Packed: return packed(g, scratch);
    }
}

// Divides a product into a grid of at most `workers` parts, chosen so that the parts read and copy the least
// memory.
struct Grid {
    int64_t rows = 1, columns = 1;
    Grid(int64_t workers, int64_t m, int64_t n) {
        int64_t best = -1;
        for (int64_t c = 1; c <= workers; ++c) {
            const int64_t r = workers / c;
            const int64_t height = ceil_div(ceil_div(m, r), 8) * 8, width = ceil_div(ceil_div(n, c), 64) * 64;
            const int64_t cost = height * width + 16 * (height + width);
            if (best < 0 || cost < best) {
                best = cost;
                rows = r;
                columns = c;
            }
        }
    }
};

template <class T>
void gemm_one(KernelContext& ctx, Gemm<T> g) {
    if (g.m == 0 || g.n == 0) return;
    if (g.k == 0) return set_to_init(g);
    g.stream = g.init != g.c && worth_streaming(g.m * g.n * static_cast<int64_t>(sizeof(T)));
    const Way way = choose(g);
    const int64_t work = g.m * g.n * g.k;
    const int64_t workers = work < 2 * kFlopsPerThread ? 1 : min(num_threads(), work / kFlopsPerThread);
    const int64_t size = scratch_size(way, g);
    T* scratch = size == 0 ? nullptr : cpu::scratch<T>(ctx, size * workers);
    if (workers == 1) return one_thread(way, g, scratch);
    // Each part is computed as a separate product, by the same algorithm and with the same steps along k. So no
    // thread waits for another, and the sums do not depend on the division.
    const Grid grid(workers, g.m, g.n);
    parallel_for(0, grid.rows * grid.columns, 1, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            const int64_t r = w / grid.columns, c = w % grid.columns, vectors = ceil_div(g.n, kLanes<T>);
            const int64_t j0 = vectors * c / grid.columns * kLanes<T>,
                          j1 = vectors * (c + 1) / grid.columns * kLanes<T>;
            one_thread(way, part(g, g.m * r / grid.rows, g.m * (r + 1) / grid.rows, j0, min(g.n, j1)),
                       scratch + w * size);
        }
    });
}

template <class T>
void serial(const Gemm<T>& g, T* scratch) {
    if (g.m == 0 || g.n == 0) return;
    if (g.k == 0) return set_to_init(g);
    one_thread(choose(g), g, scratch);
}

template <class T>
Gemm<T> at(const Gemm<T>& g, int64_t i, int64_t a, int64_t b, int64_t c, int64_t init) {
    Gemm<T> one = g;
    one.a += i * a;
    one.b += i * b;
    one.c += i * c;
    if (g.init != nullptr) one.init += i * init;
    return one;
}

template <class T>
void batched(KernelContext& ctx, const Gemm<T>& g, int64_t count, int64_t a, int64_t b, int64_t c,
             int64_t init) {
    if (count == 0 || g.m == 0 || g.n == 0) return;
    const int64_t work = g.k == 0 ? 0 : g.m * g.n * g.k;
    // Large products are computed one after the other by all threads. Small products are divided among the threads.
    if (g.k == 0 || count == 1 || work >= 64 * kFlopsPerThread) {
        for (int64_t i = 0; i < count; ++i) gemm_one(ctx, at(g, i, a, b, c, init));
        return;
    }
    const Way way = choose(g);
    const int64_t size = scratch_size(way, g);
    const int64_t workers = max(1, min(min(num_threads(), count), count * work / kFlopsPerThread));
    T* scratch = size == 0 ? nullptr : cpu::scratch<T>(ctx, size * workers);
    parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            for (int64_t i = count * w / workers; i < count * (w + 1) / workers; ++i) {
                one_thread(way, at(g, i, a, b, c, init), scratch + w * size);
            }
        }
    });
}

// Each block of columns is computed separately, by the same operations for any number of threads.
template <class B>
void few_rows(const Gemm<float, B>& g, int64_t count, int64_t a, int64_t b, int64_t c, int64_t init) {
    const bool along = g.b_row == 1;
    const int64_t width = along ? 64 : stream_columns(g.m), blocks = ceil_div(g.n, width);
    parallel_for(
        0, count * blocks, kFlopsPerThread / (g.m * g.k * width + 1) + 1, [&](int64_t first, int64_t last) {
            for (int64_t t = first; t < last; ++t) {
                const int64_t number = t / blocks, j = t % blocks * width, columns = min(width, g.n - j);
                Gemm<float, B> one = g;
                one.a += number * a;
                one.b += number * b;
                one.c += number * c;
                if (g.init != nullptr) one.init += number * init;
                if (along) {
                    dots_of_halves(one, j, j + columns);
                    continue;
                }
                one.n = columns;
                one.b += j;
                one.c += j;
                if (g.init != nullptr) one.init += j * g.init_col;
                stream(one);
            }
        });
}

template <class T>
T dot(int64_t n, const T* x, int64_t x_stride, const T* y, int64_t y_stride) {
    if (x_stride != 1 || y_stride != 1) {
        T total = T(0);
        for (int64_t i = 0; i < n; ++i) total += x[i * x_stride] * y[i * y_stride];
        return total;
    }
    constexpr int kL = kLanes<T>;
    Vec<T> s[4] = {};
    int64_t i = 0;
    for (; i + 4 * kL <= n; i += 4 * kL) {
#pragma GCC unroll 4
        for (int p = 0; p < 4; ++p) s[p] += load(x + i + p * kL) * load(y + i + p * kL);
    }
    for (; i < n; i += kL) {
        const Lanes<T> lanes(min(kL, n - i));
        s[0] += load(x + i, lanes) * load(y + i, lanes);
    }
    return sum((s[0] + s[1]) + (s[2] + s[3]));
}

bool has_pairs() {
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

void pair_up(float* out, const uint16_t* even, const uint16_t* odd, int64_t n) {
    auto* bits = reinterpret_cast<uint32_t*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) bits[i] = even[i] | static_cast<uint32_t>(odd[i]) << 16;
}

}  // namespace

const GemmKernels gemm_kernels_table = {gemm_one<float>,
                                        gemm_one<double>,
                                        most_scratch<float>,
                                        most_scratch<double>,
                                        serial<float>,
                                        serial<double>,
                                        packed_size<float>,
                                        packed_size<double>,
                                        pack_columns<float>,
                                        pack_columns<double>,
                                        serial_packed<float>,
                                        serial_packed<double>,
                                        batched<float>,
                                        batched<double>,
                                        dot<float>,
                                        dot<double>,
                                        integer,
                                        few_rows<Half>,
                                        few_rows<BFloat16>,
                                        has_pairs,
                                        pair_up,
                                        has_tiles,
                                        tile_scratch,
                                        multiply_tiles_serially,
                                        multiply_tile_batch};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
