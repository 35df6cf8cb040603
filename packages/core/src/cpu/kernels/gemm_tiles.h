// Products of bfloat16 matrices with the tile registers of AMX. Included by gemm.cpp only.
//
// Note [Tiles]
// A tile register holds 16 rows of 64 bytes. One instruction multiplies a tile of a (16 rows, 32 steps along k) by a tile of b
// (32 steps, 16 columns) and adds the products to a tile of 16x16 floats. A tile of b stores pairs of steps: its row p holds
// the steps 2p and 2p + 1 of all columns. The inner loop keeps 2x2 tiles of sums in registers. Both operands are packed into
// tiles in the order of use. The product is divided into:
//
//   ranges    columns of b, whose packed tiles stay in the last-level cache
//   chunks    steps along k; the sums of a chunk are added to those of the chunks before it
//   blocks    rows of a, whose packed tiles stay in the second-level cache
//   panels    32 columns of b
//   depths    steps along k of a panel, which stays in the first-level cache
//
// The order of the additions depends on k only, so the result depends neither on the other sizes nor on the number of threads.
// AMX treats subnormal operands as zero, and rounds subnormal sums to zero.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/contiguous.h"
#include "cpu/gemm.h"
#include "cpu/kernels/gemm_stream.h"
#include "cpu/kernels/simd.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

#if defined(__AVX512F__)

constexpr int64_t kTileRows = 16, kTileSteps = 32, kTileElements = kTileRows * kTileSteps;
constexpr int64_t kPanelColumns = 2 * kTileRows;
constexpr int64_t kTileRange = 2048, kTileChunk = 4096, kTileDepth = 256;
constexpr int64_t kTileBlockElements = 1 << 19;
// Number of columns that are packed together, so that rows of b are read in longer runs.
constexpr int64_t kTileGroup = 8 * kTileRows;
// Number of multiply-adds below which a second thread costs more time than it saves.
constexpr int64_t kTileFlopsPerThread = 1 << 23;

// The sizes of the parts of a product.
struct TileCut {
    int64_t range, chunk, depth, block;
    bool one_chunk, one_block;
    TileCut(int64_t m, int64_t n, int64_t k)
        : range(even_part(n, kTileRange, kTileGroup)),
          chunk(even_part(k, kTileChunk, kTileSteps)),
          depth(even_part(chunk, kTileDepth, kTileSteps)),
          block(even_part(m, kTileBlockElements / chunk / kPanelColumns * kPanelColumns, kPanelColumns)),
          one_chunk(chunk >= k),
          one_block(block >= m) {}
    // Numbers of elements of scratch memory.
    int64_t a_size() const { return block * chunk; }
    int64_t b_size() const { return (one_block ? kTileGroup : range) * chunk; }
    // The sums of all blocks and panels are kept for the next chunk.
    int64_t sums_size(int64_t m) const {
        return one_chunk ? block * kPanelColumns : round_up(m, block) * range;
    }
};

// Reads 16 lines of up to 32 steps as vectors of pairs of steps. If `by_line`, vector l holds the pairs of line l; otherwise
// vector p holds pair p of all lines. Missing lines and steps are 0.
template <bool by_line>
RL_INLINE void read_tile(Vec<float>* to, const uint16_t* from, int64_t line, int64_t step, int64_t lines,
                         int64_t steps) {
    if (step == 1) {
        const auto mask = static_cast<__mmask32>((uint64_t{1} << steps) - 1);
#pragma GCC unroll 16
        for (int64_t l = 0; l < kTileRows; ++l)
            to[l] = l < lines ? (Vec<float>)_mm512_maskz_loadu_epi16(mask, from + l * line) : Vec<float>{};
        if constexpr (!by_line) transpose<float>(to);
        return;
    }
    if (line == 1) {
        const auto mask = static_cast<__mmask16>((1u << lines) - 1);
        const auto row = [&](int64_t s) {
            return s < steps ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + s * step))
                             : __m512i{};
        };
#pragma GCC unroll 16
        for (int64_t p = 0; p < kTileRows; ++p)
            to[p] = (Vec<float>)_mm512_or_si512(row(2 * p), _mm512_slli_epi32(row(2 * p + 1), 16));
        if constexpr (by_line) transpose<float>(to);
        return;
    }
    alignas(64) uint16_t elements[kTileElements] = {};
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < steps; ++s) elements[l * kTileSteps + s] = from[l * line + s * step];
    read_tile<by_line>(to, elements, kTileSteps, 1, kTileRows, kTileSteps);
}

// Packs lines and steps into tiles: all steps of the first 16 lines, then those of the next 16 lines.
template <bool by_line>
void pack_tiles(uint16_t* to, const uint16_t* from, int64_t line, int64_t step, int64_t lines,
                int64_t steps) {
    const int64_t padded = round_up(steps, kTileSteps);
    const auto pack = [&](int64_t l, int64_t s) {
        Vec<float> tile[kTileRows];
        read_tile<by_line>(tile, from + l * line + s * step, line, step, min(kTileRows, lines - l),
                           min(kTileSteps, steps - s));
        auto* out = reinterpret_cast<float*>(to + l * padded + s * kTileRows);
#pragma GCC unroll 16
        for (int64_t r = 0; r < kTileRows; ++r) store(out + r * kTileRows, tile[r]);
    };
    // The inner loop runs along adjacent elements.
    if (step == 1) {
        for (int64_t l = 0; l < lines; l += kTileRows)
            for (int64_t s = 0; s < steps; s += kTileSteps) pack(l, s);
    } else {
        for (int64_t s = 0; s < steps; s += kTileSteps)
            for (int64_t l = 0; l < lines; l += kTileRows) pack(l, s);
    }
}

// Adds the products of `steps` tiles to 2x2 tiles of sums, or to fewer, or replaces the sums if `add` is false. A row of sums
// has kPanelColumns elements. The second tile of a and b begins `next` elements after the first. The instructions are written
// as assembly, because compilers provide them only in functions for processors that have AMX.
template <bool two_rows, bool two_columns>
[[gnu::noinline]] void multiply_tiles(float* sums, bool add, const uint16_t* a, const uint16_t* b,
                                      int64_t next, int64_t steps) {
    const int64_t row = kTileSteps * sizeof(uint16_t), sums_row = kPanelColumns * sizeof(float);
    float* const below = sums + kTileRows * kPanelColumns;
    const uint16_t *const a1 = a + next, *const b1 = b + next;
    if (add) {
        asm volatile("tileloadd (%0,%1,1), %%tmm0" : : "r"(sums), "r"(sums_row) : "memory");
        if (two_columns)
            asm volatile("tileloadd 64(%0,%1,1), %%tmm1" : : "r"(sums), "r"(sums_row) : "memory");
        if (two_rows) asm volatile("tileloadd (%0,%1,1), %%tmm2" : : "r"(below), "r"(sums_row) : "memory");
        if (two_rows && two_columns)
            asm volatile("tileloadd 64(%0,%1,1), %%tmm3" : : "r"(below), "r"(sums_row) : "memory");
    } else {
        asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3"
                     :
                     :
                     : "memory");
    }
    for (int64_t s = 0; s < steps * kTileElements; s += kTileElements) {
        asm volatile("tileloadd (%0,%1,1), %%tmm4" : : "r"(a + s), "r"(row) : "memory");
        asm volatile("tileloadd (%0,%1,1), %%tmm6" : : "r"(b + s), "r"(row) : "memory");
        asm volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0" : : : "memory");
        if (two_columns) {
            asm volatile("tileloadd (%0,%1,1), %%tmm7" : : "r"(b1 + s), "r"(row) : "memory");
            asm volatile("tdpbf16ps %%tmm7, %%tmm4, %%tmm1" : : : "memory");
        }
        if (two_rows) {
            asm volatile("tileloadd (%0,%1,1), %%tmm5" : : "r"(a1 + s), "r"(row) : "memory");
            asm volatile("tdpbf16ps %%tmm6, %%tmm5, %%tmm2" : : : "memory");
            if (two_columns) asm volatile("tdpbf16ps %%tmm7, %%tmm5, %%tmm3" : : : "memory");
        }
    }
    asm volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(sums), "r"(sums_row) : "memory");
    if (two_columns) asm volatile("tilestored %%tmm1, 64(%0,%1,1)" : : "r"(sums), "r"(sums_row) : "memory");
    if (two_rows) asm volatile("tilestored %%tmm2, (%0,%1,1)" : : "r"(below), "r"(sums_row) : "memory");
    if (two_rows && two_columns)
        asm volatile("tilestored %%tmm3, 64(%0,%1,1)" : : "r"(below), "r"(sums_row) : "memory");
}

// Returns the addend of 16 columns.
RL_INLINE __m512 addend_of(const TileGemm& g, int64_t i, int64_t j, __mmask16 mask) {
    const uint16_t* from = g.init + i * g.init_row + j * g.init_col;
    const __m512i bits = g.init_col == 0 ? _mm512_set1_epi32(*from)
                                         : _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

// Scales up to 32x32 sums, adds the addend, and writes the results.
void finish_tiles(const TileGemm& g, const float* sums, int64_t i, int64_t j) {
    const int64_t rows = min(2 * kTileRows, g.m - i), columns = min(kPanelColumns, g.n - j);
    const auto mask = static_cast<__mmask32>((uint64_t{1} << columns) - 1);
    const auto left = static_cast<__mmask16>(mask), right = static_cast<__mmask16>(mask >> 16);
    const __m512 alpha = _mm512_set1_ps(g.alpha), beta = _mm512_set1_ps(g.beta);
    for (int64_t r = 0; r < rows; ++r) {
        __m512 v = _mm512_mul_ps(_mm512_load_ps(sums + r * kPanelColumns), alpha),
               w = _mm512_mul_ps(_mm512_load_ps(sums + r * kPanelColumns + kTileRows), alpha);
        if (g.wide != nullptr) {
            float* to = g.wide + (i + r) * g.c_row + j;
            if (g.add) {
                v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(left, to));
                w = _mm512_add_ps(w, _mm512_maskz_loadu_ps(right, to + kTileRows));
            }
            _mm512_mask_storeu_ps(to, left, v);
            _mm512_mask_storeu_ps(to + kTileRows, right, w);
            continue;
        }
        if (g.init != nullptr) {
            v = _mm512_fmadd_ps(beta, addend_of(g, i + r, j, left), v);
            if (right != 0) w = _mm512_fmadd_ps(beta, addend_of(g, i + r, j + kTileRows, right), w);
        }
        __m512i rounded;
        asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(rounded) : "v"(w), "v"(v));
        _mm512_mask_storeu_epi16(g.c + (i + r) * g.c_row + j, mask, rounded);
    }
}

// Computes a product on this thread. The scratch memory is aligned to 64 bytes.
void multiply_by_tiles(const TileGemm& g, const TileCut& cut, uint16_t* packed_a, uint16_t* packed_b,
                       float* sums) {
    // The sums of a panel of a block. If there are several chunks, each panel and block has its own memory.
    const int64_t panel_size = cut.one_chunk ? 0 : round_up(g.m, cut.block) * kPanelColumns,
                  block_size = cut.one_chunk ? 0 : kPanelColumns;
    for (int64_t j0 = 0; j0 < g.n; j0 += cut.range) {
        const int64_t range = min(cut.range, g.n - j0);
        for (int64_t k0 = 0; k0 < g.k; k0 += cut.chunk) {
            const int64_t chunk = min(cut.chunk, g.k - k0), padded = round_up(chunk, kTileSteps);
            const bool last = k0 + chunk == g.k;
            for (int64_t i0 = 0; i0 < g.m; i0 += cut.block) {
                const int64_t block = min(cut.block, g.m - i0);
                pack_tiles<true>(packed_a, g.a + i0 * g.a_row + k0 * g.a_col, g.a_row, g.a_col, block, chunk);
                for (int64_t j = 0; j < range; j += kPanelColumns) {
                    const uint16_t* b = packed_b + (cut.one_block ? j % kTileGroup : j) * padded;
                    if (i0 == 0 && j % kTileGroup == 0)
                        pack_tiles<false>(packed_b + (b - packed_b), g.b + k0 * g.b_row + (j0 + j) * g.b_col,
                                          g.b_col, g.b_row, min(kTileGroup, range - j), chunk);
                    const bool two_columns = range - j > kTileRows;
                    float* const panel = sums + j / kPanelColumns * panel_size + i0 * block_size;
                    for (int64_t d = 0; d < padded; d += cut.depth) {
                        const int64_t steps = min(cut.depth, padded - d) / kTileSteps;
                        for (int64_t i = 0; i < block; i += 2 * kTileRows) {
                            const bool two_rows = block - i > kTileRows, add = k0 > 0 || d > 0;
                            float* const tile = panel + i * kPanelColumns;
                            const uint16_t* a = packed_a + i * padded + d * kTileRows;
                            const auto multiply = two_rows      ? two_columns ? multiply_tiles<true, true>
                                                                              : multiply_tiles<true, false>
                                                  : two_columns ? multiply_tiles<false, true>
                                                                : multiply_tiles<false, false>;
                            multiply(tile, add, a, b + d * kTileRows, kTileRows * padded, steps);
                            if (last && d + cut.depth >= padded) finish_tiles(g, tile, i0 + i, j0 + j);
                        }
                    }
                }
            }
        }
    }
}

// The operand of ldtilecfg: all tiles have 16 rows of 64 bytes.
struct alignas(64) TileConfig {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

bool has_tiles() {
    // Linux saves the tile registers only for processes that have asked for permission to use them.
    static const bool allowed = [] {
        constexpr int kRequestPermission = 0x1023, kTileData = 18;  // of asm/prctl.h and asm/fpu.h
        return __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bw") &&
               syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
    }();
    return allowed;
}

// Loads the configuration of the tiles in this thread, and releases the tiles at the end.
struct TileScope {
    TileScope() {
        const TileConfig config;
        asm volatile("ldtilecfg %0" : : "m"(config));
    }
    TileScope(const TileScope&) = delete;
    ~TileScope() { asm volatile("tilerelease"); }
};

// The scratch memory of a product, in bytes, whose beginning is aligned to 64 bytes.
struct TileMemory {
    int64_t a, b, sums;
    TileMemory(const TileCut& cut, int64_t m)
        : a(2 * cut.a_size()), b(2 * cut.b_size()), sums(4 * cut.sums_size(m)) {}
    int64_t size() const { return a + b + sums; }
    void multiply(const TileGemm& g, const TileCut& cut, char* memory) const {
        multiply_by_tiles(g, cut, reinterpret_cast<uint16_t*>(memory),
                          reinterpret_cast<uint16_t*>(memory + a), reinterpret_cast<float*>(memory + a + b));
    }
};

char* aligned(void* memory) {
    return static_cast<char*>(memory) + (64 - reinterpret_cast<uintptr_t>(memory) % 64) % 64;
}

int64_t tile_scratch(int64_t m, int64_t n, int64_t k) { return TileMemory(TileCut(m, n, k), m).size() + 64; }

void multiply_tiles_serially(const TileGemm& g, void* scratch) {
    const TileCut cut(g.m, g.n, g.k);
    const TileScope scope;
    TileMemory(cut, g.m).multiply(g, cut, aligned(scratch));
}

void multiply_tile_batch(KernelContext& ctx, const TileGemm& g, int64_t count, int64_t a, int64_t b,
                         int64_t c, int64_t init) {
    const int64_t workers = max(1, min(num_threads(), count * g.m * g.n * g.k / kTileFlopsPerThread));
    // Each product is divided along its longer side if there are fewer products than threads.
    const bool by_rows = g.m >= g.n;
    const int64_t parts = ceil_div(workers, count), end = by_rows ? g.m : g.n,
                  length = round_up(ceil_div(end, parts), kPanelColumns);
    const int64_t rows = by_rows ? length : g.m, columns = by_rows ? g.n : length;
    const TileCut cut(rows, columns, g.k);
    const TileMemory memory(cut, rows);
    char* const all = aligned(scratch<char>(ctx, workers * memory.size() + 64));
    const int64_t tasks = count * parts;
    parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
        const TileScope scope;
        for (int64_t w = first; w < last; ++w) {
            for (int64_t t = tasks * w / workers; t < tasks * (w + 1) / workers; ++t) {
                const int64_t from = t % parts * length, number = t / parts;
                if (from >= end) continue;
                TileGemm one = g;
                one.a += number * a + (by_rows ? from * g.a_row : 0);
                one.b += number * b + (by_rows ? 0 : from * g.b_col);
                one.c += number * c + (by_rows ? from * g.c_row : from);
                if (g.init != nullptr) one.init += number * init + from * (by_rows ? g.init_row : g.init_col);
                (by_rows ? one.m : one.n) = min(length, end - from);
                memory.multiply(one, cut, all + w * memory.size());
            }
        }
    });
}

#else

bool has_tiles() { return false; }
int64_t tile_scratch(int64_t, int64_t, int64_t) { return 0; }
void multiply_tiles_serially(const TileGemm&, void*) {}
void multiply_tile_batch(KernelContext&, const TileGemm&, int64_t, int64_t, int64_t, int64_t, int64_t) {}

#endif

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
