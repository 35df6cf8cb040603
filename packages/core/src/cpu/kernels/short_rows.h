// Short rows of adjacent elements, transposed so that each lane of a vector computes one row.
#pragma once

#include <type_traits>

#include "cpu/kernels/simd.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// Transposes rows: out[i * width + l] becomes element i of row l for i < n and l < rows, and 0 for rows <= l < width.
/// Rows are `step` bytes apart. Elements have 4 or 8 bytes, and `width` is a multiple of the number of lanes of a
/// vector.
template <int64_t width, class E>
inline void transpose_rows(E* out, const char* in, int64_t step, int64_t n, int64_t rows = width) {
    using Lane = std::conditional_t<sizeof(E) == 4, float, double>;
    constexpr int64_t side = kLanes<Lane>;
    for (int64_t first = 0; first < width; first += side) {
        for (int64_t i = 0; i < n; i += side) {
            const int64_t count = n - i < side ? n - i : side;
            const Lanes<Lane> lanes(count);
            Vec<Lane> square[side];
#pragma GCC unroll 16
            for (int64_t l = 0; l < side; ++l)
                square[l] = first + l < rows
                                ? load(reinterpret_cast<const Lane*>(in + (first + l) * step) + i, lanes)
                                : Vec<Lane>{};
            transpose<Lane>(square);
#pragma GCC unroll 16
            for (int64_t k = 0; k < side; ++k)
                if (k < count) store(reinterpret_cast<Lane*>(out + (i + k) * width + first), square[k]);
        }
    }
}

/// The largest number of elements of a short row. A group of such rows (see ShortRows) fits into the first-level cache.
template <class T>
inline constexpr int64_t kShortRow = 4 * kLanes<T>;

/// The elements of a group of short rows. The group has one row for each lane of a vector. Element i of row l is at i *
/// kLanes<T> + l.
template <class T>
struct ShortRows {
    static constexpr int64_t kL = kLanes<T>;
    alignas(64) T elements[kShortRow<T> * kL];

    /// Reads `rows` rows of n adjacent elements. Each row begins `step` elements after the previous row. The lanes of
    /// rows that are not read become 0.
    void read(const T* from, int64_t rows, int64_t n, int64_t step) {
        transpose_rows<kL>(elements, reinterpret_cast<const char*>(from),
                           step * static_cast<int64_t>(sizeof(T)), n, rows);
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
