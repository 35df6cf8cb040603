#include "cpu/embedding_kernels.h"

#include <type_traits>

#include "cpu/kernels/rows.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Each thread processes some columns of all rows, so that no two threads write to the same element. The sums are in
// the order of the indices for any number of threads.
template <class T>
void add_rows(T* table, int64_t width, const T* rows, const int64_t* indices, int64_t count, int64_t skip,
              const T* scale) {
    constexpr int64_t kColumns = 64, kElementsPerThread = 1 << 15;
    const int64_t blocks = (width + kColumns - 1) / kColumns;
    parallel_for(0, blocks, kElementsPerThread / (count * kColumns + 1) + 1,
                 [&](int64_t first, int64_t last) {
                     const int64_t begin = first * kColumns,
                                   n = (last * kColumns < width ? last * kColumns : width) - begin;
                     for (int64_t i = 0; i < count; ++i) {
                         const int64_t row = indices[i];
                         if (row == skip) continue;
                         // The rows of the table are far apart, so a row that is needed soon is prefetched.
                         if (i + 8 < count) __builtin_prefetch(table + indices[i + 8] * width + begin, 1);
                         T* to = table + row * width + begin;
                         const T* from = rows + i * width + begin;
                         const T factor = scale == nullptr ? T(1) : scale[row];
                         map_row(to, n, [&](int64_t j, auto lanes) {
                             return load(to + j, lanes) + load(from + j, lanes) * factor;
                         });
                     }
                 });
}

template <class T>
void sum_rows(T* out, const T* table, int64_t pitch, int64_t width, const int64_t* indices,
              const int64_t* starts, int64_t count, double divisor, int64_t skip) {
    constexpr int kL = kLanes<T>, kVectors = 4, kBlock = kVectors * kL;
    const int64_t each = count == 0 ? 0 : starts[count] / count;
    parallel_for(0, count, (1 << 15) / ((each + 1) * width + 1) + 1, [&](int64_t first, int64_t last) {
        const int64_t end = starts[last];
        const auto add_block = [&]<int kV>(std::integral_constant<int, kV>, int64_t b, int64_t begin,
                                           int64_t column, int64_t in_last) {
            const Lanes<T> lanes(in_last);
            Vec<T> sums[kV] = {};
            for (int64_t i = begin; i < starts[b + 1]; ++i) {
                // The rows of the table are far apart, so a row that is needed soon is prefetched.
                if (i + 16 < end) {
                    const T* soon = table + indices[i + 16] * pitch + column;
                    for (int v = 0; v < kV; ++v) __builtin_prefetch(soon + v * kL);
                }
                if (indices[i] == skip) continue;
                const T* from = table + indices[i] * pitch + column;
#pragma GCC unroll 4
                for (int v = 0; v < kV; ++v) {
                    const Vec<T> x = v + 1 < kV ? load(from + v * kL) : load(from + v * kL, lanes);
                    sums[v] = i == begin ? x : sums[v] + x;
                }
            }
            T* to = out + b * width + column;
            for (int v = 0; v < kV; ++v) {
                if (divisor != 1 && begin < starts[b + 1]) sums[v] /= static_cast<T>(divisor);
                if (v + 1 < kV) store(to + v * kL, sums[v]);
                else store(to + v * kL, sums[v], lanes);
            }
        };
        for (int64_t b = first; b < last; ++b) {
            // The sums of a block of columns stay in registers. Leading rows that are not added are skipped.
            int64_t begin = starts[b];
            while (begin < starts[b + 1] && indices[begin] == skip) ++begin;
            int64_t column = 0;
            for (; column + kBlock <= width; column += kBlock)
                add_block(std::integral_constant<int, kVectors>(), b, begin, column, kL);
            for (; column < width; column += kL)
                add_block(std::integral_constant<int, 1>(), b, begin, column,
                          width - column < kL ? width - column : kL);
        }
    });
}

}  // namespace

const EmbeddingKernels embedding_kernels_table = {add_rows<float>, add_rows<double>, sum_rows<float>,
                                                  sum_rows<double>};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
