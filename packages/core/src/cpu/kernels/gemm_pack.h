// Copies blocks of a matrix in the order in which the inner kernels read them. For each step along k, the elements
// of one panel of `width` rows (of a) or columns (of b) are adjacent.
#pragma once

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// Packs `count` rows of a, or `count` columns of b, of length `k`: sets out[p * width + l] = in[l * stride + p *
/// step]. With `kPad`, the elements from `count` to `width` are set to zero (`width` is then a multiple of a vector
/// register's lanes).
template <class T, bool kPad>
static void pack_panel(T* out, int64_t width, const T* in, int64_t stride, int64_t step, int64_t count,
                       int64_t k) {
    constexpr int kL = kLanes<T>;
    if (stride == 1) {  // elements of one step are adjacent: copy them together
        for (int64_t p = 0; p < k; ++p) {
            const T* source = in + p * step;
            T* o = out + p * width;
            int64_t l = 0;
            for (; l + kL <= count; l += kL) {
                store(o + l, load(source + l));
                __builtin_prefetch(source + l + 16 * step);  // too short for the hardware prefetcher
            }
            if (count - l == 4) {  // a panel of rows with 16 registers; masks would be slower
                __builtin_memcpy(o + l, source + l, 4 * sizeof(T));
                __builtin_prefetch(source + l + 16 * step);
            } else if (l < count) {
                store(o + l, load(source + l, Lanes<T>(count - l)), Lanes<T>(count - l));
            }
            if constexpr (kPad) {
                for (l = count; l < width; ++l) o[l] = T(0);
            }
        }
        return;
    }
    if (step == 1) {  // elements along k are adjacent: transpose square tiles
        for (int64_t block = 0; block < count; block += kL) {
            // Without padding, the last block ends at `count` and may overlap the block before it.
            const int64_t first = kPad || block + kL <= count || count < kL ? block : count - kL;
            const int64_t rows = count - first < kL ? count - first : kL;
            const T* source = in + first * stride;
            T* o = out + first;
            int64_t p = 0;
            for (; p < k; p += kL) {
                const int64_t steps = k - p < kL ? k - p : kL;
                const Lanes<T> lanes(steps);
                Vec<T> r[kL];
#pragma GCC unroll 16
                for (int l = 0; l < kL; ++l) {
                    r[l] = l < rows ? load(source + l * stride + p, lanes) : Vec<T>{};
                    if (l < rows)
                        // This row belongs to the next panel.
                        __builtin_prefetch(source + (l + count) * stride + p, 0, 2);
                }
                transpose<T>(r);
                // If there are fewer rows than lanes, each store writes excess elements, which the next store
                // overwrites.
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
        for (int64_t l = 0; l < count; ++l) out[p * width + l] = in[l * stride + p * step];
        if constexpr (kPad) {
            for (int64_t l = count; l < width; ++l) out[p * width + l] = T(0);
        }
    }
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
