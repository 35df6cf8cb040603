// Short rows of adjacent elements, transposed so that each lane of a vector computes one row.
#pragma once

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// The largest number of elements of a short row. The columns of a group of such rows stay in the first-level cache.
template <class T>
inline constexpr int64_t kShortRow = 4 * kLanes<T>;

/// The elements of as many short rows as a vector has lanes: element i of row l is at i * kLanes<T> + l.
template <class T>
struct ShortRows {
    static constexpr int64_t kL = kLanes<T>;
    alignas(64) T elements[kShortRow<T> * kL];

    /// Reads `rows` rows of n adjacent elements, of which each begins `step` elements after the previous one. The other lanes
    /// become 0.
    void read(const T* from, int64_t rows, int64_t n, int64_t step) {
        for (int64_t i = 0; i < n; i += kL) {
            const int64_t count = n - i < kL ? n - i : kL;
            const Lanes<T> lanes(count);
            Vec<T> square[kL];
#pragma GCC unroll 16
            for (int64_t l = 0; l < kL; ++l)
                square[l] = l < rows ? load(from + l * step + i, lanes) : Vec<T>{};
            transpose<T>(square);
#pragma GCC unroll 16
            for (int64_t k = 0; k < kL; ++k) store(elements + (i + k) * kL, square[k]);
        }
    }

    /// Writes `rows` rows of n adjacent elements, without gaps between them.
    void write(T* to, int64_t rows, int64_t n) const {
        for (int64_t i = 0; i < n; i += kL) {
            const int64_t count = n - i < kL ? n - i : kL;
            const Lanes<T> lanes(count);
            Vec<T> square[kL];
#pragma GCC unroll 16
            for (int64_t k = 0; k < kL; ++k) square[k] = load(elements + (i + k) * kL);
            transpose<T>(square);
#pragma GCC unroll 16
            for (int64_t l = 0; l < kL; ++l)
                if (l < rows) store(to + l * n + i, square[l], lanes);
        }
    }
};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
