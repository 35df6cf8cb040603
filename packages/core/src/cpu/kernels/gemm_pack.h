// Copies of blocks of a matrix in the order in which the inner kernels read them: for each step along k, the
// elements of one panel of `width` rows (of a) or columns (of b) lie side by side.
#pragma once

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// Packs `count` lines, rows of a or columns of b, of length `k`: out[p * width + l] = in[l * line + p * step]. Lines `count` to `width`
/// become zero where `kPad` is set (then `width` is a multiple of the vector).
template <class T, bool kPad>
static void pack_panel(T* out, int64_t width, const T* in, int64_t line, int64_t step, int64_t count,
                       int64_t k) {
    constexpr int kL = kLanes<T>;
    if (line == 1) {  // lines are adjacent: copy row by row
        for (int64_t p = 0; p < k; ++p) {
            const T* row = in + p * step;
            T* o = out + p * width;
            int64_t l = 0;
            for (; l + kL <= count; l += kL) {
                store(o + l, load(row + l));
                __builtin_prefetch(row + l + 16 * step);  // rows are short here: no prefetcher sees the next
            }
            if (count - l == 4) {  // a panel of rows where registers are few; masks take longer
                __builtin_memcpy(o + l, row + l, 4 * sizeof(T));
                __builtin_prefetch(row + l + 16 * step);
            } else if (l < count) {
                store(o + l, load(row + l, Lanes<T>(count - l)), Lanes<T>(count - l));
            }
            if constexpr (kPad) {
                for (l = count; l < width; ++l) o[l] = T(0);
            }
        }
        return;
    }
    if (step == 1) {  // each line runs along k: transpose squares
        for (int64_t block = 0; block < count; block += kL) {
            // Unpadded, the last lines are those that fill a vector: it overlaps the one before.
            const int64_t first = kPad || block + kL <= count || count < kL ? block : count - kL;
            const int64_t lines = count - first < kL ? count - first : kL;
            const T* source = in + first * line;
            T* o = out + first;
            int64_t p = 0;
            for (; p < k; p += kL) {
                const int64_t steps = k - p < kL ? k - p : kL;
                const Lanes<T> lanes(steps);
                Vec<T> r[kL];
#pragma GCC unroll 16
                for (int l = 0; l < kL; ++l) {
                    r[l] = l < lines ? load(source + l * line + p, lanes) : Vec<T>{};
                    if (l < lines)
                        __builtin_prefetch(source + (l + count) * line + p, 0, 2);  // the next panel
                }
                transpose<T>(r);
                // Where lines are fewer than lanes, what a store leaves too much is written over by the next one.
#pragma GCC unroll 16
                for (int q = 0; q < kL; ++q) {
                    if (q < steps) store(o + (p + q) * width, r[q]);
                }
            }
        }
        if constexpr (kPad) {
            const int64_t written = (count + kL - 1) / kL * kL;
            for (int64_t p = 0; p < k; ++p) {
                for (int64_t l = written; l < width; ++l) out[p * width + l] = T(0);
            }
        }
        return;
    }
    for (int64_t p = 0; p < k; ++p) {
        for (int64_t l = 0; l < count; ++l) out[p * width + l] = in[l * line + p * step];
        if constexpr (kPad) {
            for (int64_t l = count; l < width; ++l) out[p * width + l] = T(0);
        }
    }
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
