#include "cpu/embedding_kernels.h"

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
    const int64_t each = count == 0 ? 0 : starts[count] / count;
    parallel_for(0, count, (1 << 15) / ((each + 1) * width + 1) + 1, [&](int64_t first, int64_t last) {
        const int64_t end = starts[last];
        for (int64_t b = first; b < last; ++b) {
            T* to = out + b * width;
            bool empty = true;
            for (int64_t i = starts[b]; i < starts[b + 1]; ++i) {
                // The rows of the table are far apart, so a row that is needed soon is prefetched.
                if (i + 16 < end) {
                    const T* soon = table + indices[i + 16] * pitch;
                    for (int64_t j = 0; j < width && j < 256; j += 64 / static_cast<int64_t>(sizeof(T)))
                        __builtin_prefetch(soon + j);
                }
                if (indices[i] == skip) continue;
                const T* from = table + indices[i] * pitch;
                if (empty) map_row(to, width, [&](int64_t j, auto lanes) { return load(from + j, lanes); });
                else
                    map_row(to, width, [&](int64_t j, auto lanes) {
                        return load(to + j, lanes) + load(from + j, lanes);
                    });
                empty = false;
            }
            const T by = static_cast<T>(divisor);
            if (empty) map_row(to, width, [&](int64_t, auto) { return Vec<T>{}; });
            else if (divisor != 1)
                map_row(to, width, [&](int64_t j, auto lanes) { return load(to + j, lanes) / by; });
        }
    });
}

}  // namespace

const EmbeddingKernels embedding_kernels_table = {add_rows<float>, add_rows<double>, sum_rows<float>,
                                                  sum_rows<double>};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
